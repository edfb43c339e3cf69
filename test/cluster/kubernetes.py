# SPDX-License-Identifier: BSD-2-Clause
"""Check that a manifest is a Job as Kubernetes takes it, as far as ours uses that; with --command, print
the container's words, each ended by NUL."""

import sys

import jsonschema
import yaml

NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "maxLength": 63}
COUNT = {"type": "integer", "minimum": 0}
QUANTITY = {"type": ["string", "integer"], "pattern": "^[0-9]+(m|[KMGT]i)?$"}


def closed(required, **properties):
    """An object with these members and no other; those named first must be there."""
    return {"type": "object", "additionalProperties": False, "required": required.split(),
            "properties": properties}


def some(items, least=1):
    return {"type": "array", "minItems": least, "items": items}


TEXT = {"type": "string", "minLength": 1}
LABELS = {"type": "object", "minProperties": 1, "additionalProperties": NAME}
RESOURCES = {"type": "object", "additionalProperties": False, "patternProperties": {
    "^(cpu|memory|hugepages-[0-9]+[MG]i|[a-z0-9.-]+/[a-z0-9._-]+)$": QUANTITY}}
CONTAINER = closed(
    "name image command resources", name=NAME, image=TEXT, command=some(TEXT), args=some(TEXT),
    env=some(closed("name valueFrom", name=TEXT, valueFrom=closed(
        "fieldRef", fieldRef=closed("fieldPath", fieldPath={"const": "spec.nodeName"})))),
    securityContext=closed("capabilities", capabilities=closed("add", add=some(TEXT))),
    resources=closed("requests limits", requests=RESOURCES, limits=RESOURCES))
RULE = {"oneOf": [
    closed("action onExitCodes", action={"enum": ["FailJob", "FailIndex", "Ignore", "Count"]},
           onExitCodes=closed("operator values", containerName=NAME,
                              operator={"enum": ["In", "NotIn"]},
                              values=some({"type": "integer", "minimum": 1, "maximum": 255}))),
    closed("action onPodConditions", action={"enum": ["FailJob", "FailIndex", "Ignore", "Count"]},
           onPodConditions=some(closed("type", type=TEXT,
                                       status={"enum": ["True", "False", "Unknown"]})))]}
POD = closed(
    "restartPolicy containers", containers=some(CONTAINER),
    # what backoffLimitPerIndex and podFailurePolicy take
    restartPolicy={"const": "Never"},
    affinity=closed("podAntiAffinity", podAntiAffinity=closed(
        "requiredDuringSchedulingIgnoredDuringExecution",
        requiredDuringSchedulingIgnoredDuringExecution=some(closed(
            "topologyKey labelSelector", topologyKey={"const": "kubernetes.io/hostname"},
            labelSelector=closed("matchLabels", matchLabels=LABELS))))))
JOB = closed(
    "apiVersion kind metadata spec", apiVersion={"const": "batch/v1"}, kind={"const": "Job"},
    metadata=closed("name", name=NAME),
    spec=closed(
        "completions parallelism completionMode backoffLimitPerIndex activeDeadlineSeconds template",
        completions=COUNT, parallelism=COUNT, completionMode={"const": "Indexed"},
        backoffLimitPerIndex=COUNT, activeDeadlineSeconds=dict(COUNT, minimum=1),
        ttlSecondsAfterFinished=COUNT, podFailurePolicy=closed("rules", rules=some(RULE)),
        template=closed("metadata spec", metadata=closed("labels", labels=LABELS), spec=POD)))


class NoTwice(yaml.SafeLoader):
    """YAML in which no member stands twice, as Kubernetes reads it when it is strict."""

    def construct_mapping(self, node, deep=False):
        names = [self.construct_object(key) for key, _ in node.value]
        if len(names) != len(set(names)):
            raise yaml.YAMLError("a member stands twice%s" % node.start_mark)
        return super().construct_mapping(node, deep)


def check(job):
    jsonschema.Draft7Validator(JOB).validate(job)
    pod = job["spec"]["template"]
    container = pod["spec"]["containers"][0]
    wanted, most = container["resources"]["requests"], container["resources"]["limits"]
    for name, value in most.items():
        # what cannot be lent to others is asked for in full
        if "/" in name or name.startswith("hugepages-"):
            assert wanted.get(name, value) == value, name
    assert any("/" in name for name in most), "no RDMA device is asked for"
    for term in pod["spec"]["affinity"]["podAntiAffinity"].popitem()[1]:
        chosen = term["labelSelector"]["matchLabels"]
        assert chosen.items() <= pod["metadata"]["labels"].items(), "others' pods are kept away"
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        assert rule.get("onExitCodes", {}).get("containerName") in (None, container["name"])
    return container


with open(sys.argv[-1], encoding="utf-8") as file:
    CHECKED = check(yaml.load(file, NoTwice))
if "--command" in sys.argv:
    for word in CHECKED["command"] + CHECKED["args"]:
        sys.stdout.write(word + "\0")
