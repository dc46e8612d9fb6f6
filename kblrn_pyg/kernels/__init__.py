"""Numba kernels on NumPy arrays: the inner loops of everything else.

A *step code* :math:`c = 2 r + d` names a relation and a direction: over
:math:`c` there is a step from :math:`u` to :math:`v` if :math:`(u, r, v)` is a
fact and :math:`d = 0`, or :math:`(v, r, u)` is one and :math:`d = 1`. Hence
:obj:`c ^ 1` walks the same edges backwards.
"""
