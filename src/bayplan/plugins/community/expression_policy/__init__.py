"""ExpressionPolicy: filter and score nodes with CEL expressions over the pod and the node."""

from bayplan.plugins.community.expression_policy.plugin import ExpressionPolicy, ExpressionPolicyArgs, Filter, Score

__all__ = ["ExpressionPolicy", "ExpressionPolicyArgs", "Filter", "Score"]
