"""Sampling neighbours in plain Python, the truth for the kernels."""


def splitmix(seed, number):
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def naive_edges(facts, entities, num_relations, limit, edge_dropout, seeds):
    """The same in plain Python: edges towards tails, then towards heads."""
    facts = facts.t().tolist()
    both = [(h, r, t, i) for i, (h, r, t) in enumerate(facts)]
    both += [(t, r + num_relations, h, i) for i, (h, r, t) in enumerate(facts)]
    found = []
    for place, entity in enumerate(entities.tolist()):
        own = [edge for edge in both if edge[2] == entity]
        chosen = list(range(len(own)))
        if limit is not None and len(own) > limit:
            chosen, seed = [], splitmix(seeds[0], entity)
            for k in range(limit):
                last = len(own) - limit + k
                one = splitmix(seed, k) % (last + 1)
                chosen.append(last if one in chosen else one)
        for source, kind, _, fact in (own[i] for i in chosen):
            if splitmix(seeds[1], fact) >= edge_dropout * 2**64:
                found.append((source, place, kind))
    return found
