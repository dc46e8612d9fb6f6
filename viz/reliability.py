"""How far the probabilities of a calibrated model can be trusted."""

from kblrn_pyg.viz.reliability import main

if __name__ == "__main__":
    main()
