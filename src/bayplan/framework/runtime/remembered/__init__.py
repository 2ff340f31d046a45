"""Answers of plugins that are kept from one decision to the next. With `remember=False` none is; decisions are equal.

    Evaluation              per pod shape: feasibility and total of every node, updated for changed rows
    └── NodeOnlyEvaluation  per pod kind: the part that node objects alone decide
        └── columns         per plugin and sign: the verdicts or raw scores of every node
    CombinedScoreCall       one pass over the columns for the scores of several plugins
    NominatedRejections     rejections of nodes as if the pods nominated to them were there
    SecondUseCache          keeps what is used a second time, within a memory budget

Nothing here is needed to understand how a decision is made; start at `bayplan.framework.runtime.framework`.
"""
