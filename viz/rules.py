"""The heaviest rules of a relation in a trained model, with their measures."""

from kblrn_pyg.viz.rules import main

if __name__ == "__main__":
    main()
