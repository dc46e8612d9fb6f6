"""What each expert of a trained model contributes to its answers."""

from kblrn_pyg.viz.experts import main

if __name__ == "__main__":
    main()
