"""Work shared among threads is done once, and errors come through."""

import threading
import time

import pytest

from kblrn_pyg.kernels.threads import default_threads, no_scratch, run_all, run_slices


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_each_item_is_done_once_with_memory_of_its_own(num_threads):
    used = []

    def work(item, scratch):
        scratch.append(threading.get_ident())
        time.sleep(0.001)
        return item * item

    def new_scratch():
        used.append([])
        return used[-1]

    found = list(run_all(work, range(50), new_scratch, num_threads))
    assert sorted(found) == [item * item for item in range(50)]
    assert sum(map(len, used)) == 50
    assert len(used) == num_threads
    assert all(len(set(threads)) == 1 for threads in used)


def test_sharing_within_sharing_does_not_wait_forever():
    def inner(item, _):
        assert default_threads() == 1
        return item

    def outer(item, _):
        time.sleep(0.001)  # so that the helper gets some, too
        return sum(run_all(inner, range(item), lambda: None, 2))

    found = run_all(outer, range(20), lambda: None, 2)
    assert sorted(found) == [sum(range(item)) for item in range(20)]


@pytest.mark.parametrize("in_helper", [True, False])
def test_errors_come_through_and_end_the_work(in_helper):
    caller, done = threading.get_ident(), []

    def work(item, _):
        time.sleep(0.001)
        if (threading.get_ident() != caller) == in_helper:
            raise ValueError("no")
        done.append(item)

    with pytest.raises(ValueError, match="no"):
        list(run_all(work, range(100), lambda: None, 2))
    if not in_helper:
        assert len(done) < 100
    assert list(run_all(lambda item, _: item, [3], lambda: None, 2)) == [3]


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_slices_cover_all_rows_in_order(num_threads, size):
    def work(rows, _):
        time.sleep(0.0002 * (rows.start % 3))  # some are late
        return list(range(size))[rows]

    found = run_slices(work, size, no_scratch, num_threads)
    assert [row for rows in found for row in rows] == list(range(size))
