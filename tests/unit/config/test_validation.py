from __future__ import annotations

import pytest

from .support import HEADER, problems_of, v1


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("parallelism: 0", "parallelism", "should be an integer value greater than zero"),
        ("parallelism: 3000000000", "parallelism", "at most 2147483647"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore", "not in valid range [0-100]"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds", "must be greater than 0"),
        ("podMaxBackoffSeconds: 0", "podMaxBackoffSeconds", "must be greater than or equal to"),
        ("clientConnection: {burst: -1}", "clientConnection.burst", "must be non-negative"),
        ("leaderElection: {leaseDuration: 5s}", "leaderElection.leaseDuration", "must be greater than renewDeadline"),
        ("leaderElection: {retryPeriod: 9s}", "leaderElection.renewDeadline", "must be greater than 1.2 times"),
        ("leaderElection: {retryPeriod: -1s}", "leaderElection.retryPeriod", "must be greater than zero"),
        ("leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock", 'must be "leases"'),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName", "is required"),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[1].schedulerName",
            "is the name of profiles[0]",
        ),
        ("profiles: [{percentageOfNodesToScore: -1}]", "profiles[0].percentageOfNodesToScore", "not in valid range"),
        ("profiles: [{pluginConfig: [{name: A}, {name: A}]}]", "profiles[0].pluginConfig[1]", "repeated config"),
        ("profiles: [{pluginConfig: [{}]}]", "profiles[0].pluginConfig[0].name", "is required"),
        ("profiles: [{plugins: {score: {enabled: [{}]}}}]", "profiles[0].plugins.score.enabled[0].name", "is required"),
        (
            "profiles: [{plugins: {bind: {enabled: [{name: '*'}]}}}]",
            "profiles[0].plugins.bind.enabled[0]",
            "only be disabled",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
            "profiles[0].plugins.filter.enabled[0]",
            "any more",
        ),
        (
            "profiles: [{pluginConfig: [{name: CinderLimits}]}]",
            "profiles[0].pluginConfig[0]",
            "does not exist any more",
        ),
        ("profiles: [{score: {}}]", "profiles[0].score", "unknown field"),
        ("extenders: [{}]", "extenders[0].urlPrefix", "expected an http:// or https:// address"),
        (
            "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]",
            "extenders[0].weight",
            "must have a positive weight",
        ),
        ("extenders: [{urlPrefix: 'http://x', httpTimeout: -1s}]", "extenders[0].httpTimeout", "must not be negative"),
        (
            "extenders: [{urlPrefix: 'http://x', tlsConfig: {caData: '!'}}]",
            "extenders[0].tlsConfig.caData",
            "not base64",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]",
            "extenders[1].bindVerb",
            "only one extender can implement bind",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: cpu}]}]",
            "extenders[0].managedResources[0].name",
            "is an invalid extended resource name",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a.b/c}, {name: a.b/c}]}]",
            "extenders[0].managedResources[1].name",
            "duplicate extender managed resource name",
        ),
    ],
)
def test_each_rule_is_enforced_at_its_path(body: str, path: str, message: str) -> None:
    (problem,) = problems_of(HEADER + body)

    assert path == problem.path
    assert message in problem.message
    assert problem.line == 3


def test_leader_election_is_not_checked_while_it_is_off() -> None:
    assert v1("leaderElection: {leaderElect: false, leaseDuration: 1s, resourceLock: endpoints}")


def test_queue_sort_must_be_one_and_the_same() -> None:
    sort = "plugins: {queueSort: {enabled: [%s]}}"
    two = problems_of(HEADER + "profiles: [{%s}]" % (sort % "{name: A}, {name: B}"))
    differing = problems_of(HEADER + "profiles: [{schedulerName: a, %s}, {schedulerName: b}]" % (sort % "{name: A}"))

    assert "only one queue sort plugin can be enabled" in two[0].message
    assert (differing[0].path, differing[0].message) == (
        "profiles[1].plugins.queueSort",
        "must be the same for all profiles",
    )


def test_arguments_of_the_queue_sort_plugin_must_be_the_same() -> None:
    one = "{schedulerName: %s, plugins: {queueSort: {enabled: [{name: A}]}}, pluginConfig: [{name: A, args: {x: %d}}]}"
    (problem,) = problems_of(HEADER + f"profiles: [{one % ('a', 1)}, {one % ('b', 2)}]")

    assert problem.path == "profiles[1].pluginConfig[0].args"


def test_types_and_rules_are_reported_together() -> None:
    problems = problems_of(
        HEADER + "paralelism: 1\nparallelism: x\npercentageOfNodesToScore: 300\nprofiles:\n- plugins: {filter: []}\n"
        "  percentageOfNodesToScore: 200\n- schedulerName: b\n"
    )

    assert [(problem.line, problem.path) for problem in problems] == [
        (3, "paralelism"),
        (4, "parallelism"),
        (5, "percentageOfNodesToScore"),
        (7, "profiles[0].plugins.filter"),
        (7, "profiles[0].schedulerName"),
        (8, "profiles[0].percentageOfNodesToScore"),
    ]
