"""Why the model of a run scores a triple as it does, as a picture."""

from kblrn_pyg.viz.explanation import main

if __name__ == "__main__":
    main()
