"""A picture of the page of 'kblrn serve', taken in Chromium."""

from kblrn_pyg.viz.page import main

if __name__ == "__main__":
    main()
