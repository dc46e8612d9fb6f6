"""Plotting scripts: ``python -m kblrn_pyg.viz.rbf_hist --help`` and so on."""
