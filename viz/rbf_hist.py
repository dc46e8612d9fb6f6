"""Histograms of head minus tail with their radial basis functions (Figure 3), or
with the layers that a run learned."""

from kblrn_pyg.viz.rbf_hist import main

if __name__ == "__main__":
    main()
