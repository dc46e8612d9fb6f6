import os
import signal

import pytest

os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works():
    """A job in the background ignores Ctrl-C, and would hand that down to tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def paper_data(tmp_path_factory):
    """Loads the paper's data sets, each once a test run."""
    if not os.path.isdir(os.environ.get("KBLRN_DATA", "")):
        pytest.skip("KBLRN_DATA does not name the directory of the raw data")
    from kblrn_pyg.datasets import load_dataset

    root, loaded = tmp_path_factory.mktemp("data"), {}

    def load(name):
        if name not in loaded:
            loaded[name] = load_dataset(name, root)
        return loaded[name]

    return load
