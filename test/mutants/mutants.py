"""Mutants of the analysis, and of joint patches: each drops one condition of a lemma, or of a fact on which lemmas rest.

tools/test-mutants.py builds each and says which test notices; the test `mutants.fit` holds that each
still fits one place of its file.
"""
import of_facts
import of_joint
import of_plans
import of_verdicts

MUTANTS = [*of_facts.MUTANTS, *of_joint.MUTANTS, *of_plans.MUTANTS, *of_verdicts.MUTANTS]
