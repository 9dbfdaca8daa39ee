"""Mutants of one patch for a whole text: which tokens it serves, and what a layer may leave."""
from mutant import Mutant

RUNS = "lib/Distil/JointRuns.cpp"
FIT = "lib/Distil/JointFit.cpp"

MUTANTS = [
    Mutant("block-in-parallel-brings-back", RUNS,
           "return known.contains(input); }))\n      return false;", "return known.contains(input); }))\n      continue;",
           "a layer brings the residual stream back only if all behind its goal reads that alone"),
    Mutant("norm-keeps-any-length", RUNS,
           "return astray[row] > 0; }))", "return false && astray[row] > 0; }))",
           "behind a norm, what a layer before has left is not in the full run's product"),
    Mutant("target-of-the-reduced-run", RUNS,
           "const Passage &run = isGoal ? passages.full : passages.reduced;", "const Passage &run = passages.reduced;",
           "the goal is the full run's"),
    Mutant("change-of-the-full-run", RUNS,
           "addTo(reduced, site, best->fit, passages.begin);", "addTo(reduced, site, best->fit, 0);",
           "of both runs in one passage, the change is the reduced run's"),
    Mutant("one-token-above-the-capacity", "lib/Distil/Joint.cpp",
           "if (tokens > most && !request.goesOn)", "if (tokens > most + 1 && !request.goesOn)",
           "a matrix serves as many tokens as it reads numbers"),
    Mutant("row-that-is-left-is-written", FIT,
           "if (distance >= noise) {", "if (!depends) {",
           "no later row writes in what is a left row's own"),
    Mutant("dependent-row-is-served", FIT,
           "return !depends || missing.norm() <= rounding * scale;", "return true;",
           "a row that depends on others is served only if nothing is missing"),
]
