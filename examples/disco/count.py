#!/usr/bin/env python3
"""Counts the words of texts, by the library disco.py."""
import collections, os, re, sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import disco


def map(task):
    """One output for each letter that words begin with: the words, and how often they occur."""
    parts = collections.defaultdict(collections.Counter)
    for _, lines in disco.inputs(task):
        for word in re.findall(rb"[a-z]+", b" ".join(lines).lower()):
            parts[word[0] - ord("a")][word] += 1
    for label, counts in sorted(parts.items()):
        yield label, b"".join(b"%s %d\n" % (word, n) for word, n in sorted(counts.items()))


def reduce(task):
    """One output, with the label of the task's group: each word of all inputs with its count."""
    counts = collections.Counter()
    for _, lines in disco.inputs(task):
        for line in lines:
            word, n = line.split()
            counts[word] += int(n)
    print("there are %d words" % len(counts))
    yield task["group"][0], b"".join(b"%s %d\n" % (word, n) for word, n in sorted(counts.items()))


disco.run(map=map, shrink=reduce, reduce=reduce)
