"""The paper's tables, reproduced: ``benchmarks/paper.py`` is the command."""
