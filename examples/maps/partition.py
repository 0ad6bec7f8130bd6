"""Which nodes are transit nodes: those whose removal leaves regions of about equal size.

Every way between two regions passes transit nodes, which makes transit-node routing exact. KaHIP
parts the map so that few streets lead from one part to another; the smallest set of nodes that
touches all of these streets, a linear program, is taken out.
"""

from __future__ import annotations

import kahip
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from examples.maps.graph import Graph, Ints, streets_of

#: Parts may be larger than the mean by this share.
IMBALANCE = 0.3
#: KaHIP's way of working called "eco": good cuts in little time.
ECO = 1
#: Tries to meet the number of transit nodes that was asked for.
TRIES = 8


def divide(graph: Graph, count: int) -> Ints:
    """Shape (n,): a part for each node, 0.., so that few nodes leave `count` parts apart.

    Those few have -1. A part can be in pieces, and there may be fewer parts.
    """
    label = np.zeros(graph.shape[0], np.int64)
    count = min(count, len(label) // 2)
    if count > 1:
        # Where many streets meet, borders are many too.
        sizes = np.maximum(1, np.diff(graph.indptr) ** 2).tolist()
        arcs = graph.indptr.tolist(), [1] * graph.nnz, graph.indices.tolist()
        label = np.array(kahip.kaffpa(sizes, *arcs, count, IMBALANCE, True, 1, ECO)[1], np.int64)
    tails, heads, _ = streets_of(graph)
    cut = label[tails] != label[heads]
    ends, places = np.unique(np.stack([tails[cut], heads[cut]], axis=1), return_inverse=True)
    if len(ends):
        rows = np.repeat(np.arange(places.size // 2), 2)
        touched = csr_array((np.ones(places.size), (rows, places.ravel())))
        ones = np.ones(len(ends))
        each = LinearConstraint(touched, lb=1)
        taken = milp(ones, constraints=each, integrality=ones, bounds=Bounds(0, 1)).x > 0.5
        label[ends[taken]] = -1
    inside = label >= 0
    label[inside] = np.unique(label[inside], return_inverse=True)[1]
    return label


def regions_within(graph: Graph, budget: int) -> Ints:
    """`divide` into as many parts as can be with at most `budget` nodes between them.

    That number grows about as the square root of the number of parts.
    """
    best = np.zeros(graph.shape[0], np.int64)
    low, high, count = 1, graph.shape[0], max(2, budget // 12)
    for _ in range(TRIES):
        results = divide(graph, count)
        taken = int((results < 0).sum())
        if taken <= budget:
            best, low = results, count
        else:
            high = count
        if high - low < 2:
            break
        aim = count * (budget / max(1, taken)) ** 2
        count = int(np.clip(round(aim), low + 1, high - 1))
    if (best >= 0).all():
        best[np.diff(graph.indptr).argmax()] = -1
    return best
