"""The executor of each kind of plan."""

from __future__ import annotations

from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.executors.contract import Executor, ExecutorContext, ExecutorFactory
from kleene.engine.executors.sequence import SequenceExecutor
from kleene.engine.executors.trees.executor import TreeExecutor
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.trees import Alternative, TreePlan

EXECUTORS: dict[type, ExecutorFactory] = {
    SequencePlan: SequenceExecutor,
    AutomatonPlan: AutomatonExecutor,
    TreePlan: TreeExecutor,
}


def executor_for(plan: Alternative, context: ExecutorContext) -> Executor:
    return EXECUTORS[type(plan)](plan, context)
