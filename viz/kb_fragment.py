"""The neighbourhood of an entity, with names and numbers (Figure 1)."""

from kblrn_pyg.viz.kb_fragment import main

if __name__ == "__main__":
    main()
