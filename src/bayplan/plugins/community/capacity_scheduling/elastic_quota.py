"""The ElasticQuota custom resource: what a namespace is guaranteed, and how much it may borrow.

One counts per namespace, the first by name. The plugin only reads it; its status is written by the controller in
`bayplan.app.controllers`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import CustomResource, PrinterColumn, ResourcePart
from bayplan.plugins.resource_amounts import ResourceAmounts, check_amounts

__all__ = ["ElasticQuota", "ElasticQuotaSpec", "ElasticQuotaStatus"]


class ElasticQuotaSpec(ResourcePart):
    """Amounts by resource name."""

    min: Annotated[
        ResourceAmounts | None, Meta(description="Guaranteed: what is lent out of it is taken back when needed.")
    ] = None
    max: Annotated[
        ResourceAmounts | None,
        Meta(description="Never more than this; what is not named is not limited."),
    ] = None

    def __post_init__(self) -> None:
        check_amounts(self.min, self.max)


class ElasticQuotaStatus(ResourcePart):
    """Written by the controller."""

    used: Annotated[ResourceAmounts | None, Meta(description="What the pods of the namespace request.")] = None


class ElasticQuota(
    CustomResource,
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    plural="elasticquotas",
    short_names=("eq", "eqs"),
    approved_by="https://github.com/kubernetes-sigs/scheduler-plugins/pull/52",
    columns=(
        PrinterColumn("Used", ".status.used"),
        PrinterColumn("Max", ".spec.max"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
):
    """A quota that lends what it does not need."""

    spec: ElasticQuotaSpec = msgspec.field(default_factory=ElasticQuotaSpec)
    status: ElasticQuotaStatus = msgspec.field(default_factory=ElasticQuotaStatus)
