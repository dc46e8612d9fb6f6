"""Loss and validation of one run or several by epoch."""

from kblrn_pyg.viz.training import main

if __name__ == "__main__":
    main()
