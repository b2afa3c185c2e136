"""`langgraph_peer.py SHAPE TASKS` runs a graph of tasks without work with LangGraph, without a checkpointer."""

from typing import TypedDict

from graphs import arguments, report
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    nothing: int


graph = StateGraph(State)
plan = arguments()
dependents = {need for needs in plan for need in needs}
for task, needs in enumerate(plan):
    graph.add_node(f"t{task}", lambda _: {})
    graph.add_edge([f"t{need}" for need in needs] if needs else START, f"t{task}")
    if task not in dependents:
        graph.add_edge(f"t{task}", END)
compiled = graph.compile()
report(lambda: compiled.invoke({}, {"recursion_limit": len(plan) + 10}))
