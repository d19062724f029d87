"""The image's definition, the compose file and the manifests, as far as no container is needed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from memory_tool.settings import load_settings, secret_names
from tests.integration.deploy_files import CHECKOUT, DEPLOY, TEXTS, checked, documents

KUBERNETES: Final = DEPLOY / "kubernetes"
OLDEST_KUBERNETES: Final = "1.27"
"""The first with a time zone for CronJobs in its stable form."""

INTERPOLATED: Final = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")

compose: Final[dict[str, Any]] = documents(TEXTS["compose.yaml"])[0]
services: Final[dict[str, dict[str, Any]]] = compose["services"]


def test_the_compose_file_fits_its_schema() -> None:
    """That of the Compose Specification."""
    checked("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_every_secret_of_the_compose_file_has_to_be_given() -> None:
    """A default password is the password of everybody who reads this repository."""
    found = INTERPOLATED.findall(TEXTS["compose.yaml"])
    with_default = {name for name, kind, _ in found if kind != "?"}
    required = {name for name, kind, said in found if kind == "?" and said}

    assert with_default == {
        "IMAGE",
        "THREEFOLD_TORCH_INDEX",
        "API_PORT",
        "POSTGRES_PORT",
        "ELASTICSEARCH_PORT",
    }
    assert required == {
        *(f"{who}_PASSWORD" for who in ("POSTGRES", "OWNER", "APP", "WORKER")),
        *(f"{who}_PASSWORD" for who in ("ELASTIC", "ELASTICSEARCH")),
        "HTTP_KEYS",
    }
    offered = set(re.findall(r"^(\w+)=", TEXTS["example.env"], re.MULTILINE))
    assert offered == required | {"THREEFOLD_TORCH_INDEX"}


@pytest.mark.parametrize("name", ["worker", "jobs", "api"])
def test_our_processes_get_settings_that_can_be_read(name: str) -> None:
    """By the one reader of settings, with all secrets given."""
    environment = {
        variable: INTERPOLATED.sub("hush", value)
        for variable, value in services[name]["environment"].items()
    }

    settings = load_settings(environment=environment)

    for url in (settings.database_url, settings.worker_database_url, settings.owner_database_url):
        assert ":hush@postgres/threefold?sslmode=verify-full&sslrootcert=/tls/ca.crt" in url
    assert settings.elasticsearch_url.startswith("https://")
    assert settings.elasticsearch_ca == "/tls/ca.crt"


@pytest.mark.parametrize("name", sorted(services))
def test_no_service_has_more_power_than_it_needs(name: str) -> None:
    """What is reached from outside or can become root is what an intruder looks for."""
    service = services[name]

    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"privileged", "pid", "ipc"} & set(service)
    if name not in {"postgres", "elasticsearch"}:  # they set up their folders as their images do
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True


def test_every_server_tells_how_it_is() -> None:
    """Who starts before its server is ready fails, or worse, finds an empty one."""
    lasting = {name for name, service in services.items() if service["restart"] != "no"}
    checks = {name: services[name].get("healthcheck", {}) for name in lasting - {"jobs"}}

    assert lasting == {"postgres", "elasticsearch", "worker", "jobs", "api"}
    assert all(check.get("test") for check in checks.values())


def test_everything_waits_for_what_it_needs() -> None:
    """A one-shot service has to have succeeded, a server to be healthy."""
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            once = services[needed]["restart"] == "no"
            wanted = "service_completed_successfully" if once else "service_healthy"
            assert how["condition"] == wanted, (name, needed)


def test_every_volume_is_there() -> None:
    """A path that isn't there becomes an empty folder owned by root."""
    mounts = [mount for service in services.values() for mount in service.get("volumes", [])]

    assert len(mounts) > 10
    for source in {mount.partition(":")[0] for mount in mounts}:
        if source.startswith("."):
            assert (DEPLOY / source).exists(), source
        else:
            assert source in compose["volumes"]


def test_postgres_gets_shared_memory() -> None:
    """With the 64 MB of a container parallel queries fail."""
    assert services["postgres"]["shm_size"] == "512mb"


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the image's definition with what follows it."""
    lines = re.sub(r"\\\n", " ", TEXTS["Dockerfile"]).splitlines()
    return [
        (word, rest.strip())
        for word, _, rest in (line.partition(" ") for line in lines)
        if line_is_instruction(word)
    ]


def line_is_instruction(word: str) -> bool:
    """Whether a line's first word is one; the others are comments and blanks."""
    return word.isupper() and word.isalpha()


def copied() -> Iterator[tuple[str, str]]:
    """What is copied from the checkout, and to where."""
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from="):
            *sources, target = rest.split()
            yield from ((source, target) for source in sources)


def test_the_image_is_made_of_what_is_there() -> None:
    """And of nothing that the list of what may go in leaves out."""
    allowed = set(re.findall(r"^!(.+)$", TEXTS["Dockerfile.dockerignore"], re.MULTILINE))
    sources = {source for source, _ in copied()}

    assert sources == allowed
    assert [source for source in sources if not (CHECKOUT / source).exists()] == []


def test_the_image_runs_as_nobody_and_tells_how_it_is() -> None:
    """Root in a container is root on the machine, but for one mistake."""
    said = dict(instructions())  # the last of each kind

    assert said["USER"] == "10001:10001"
    assert 'CMD ["threefold", "worker", "--check"]' in said["HEALTHCHECK"]
    assert said["CMD"] == '["threefold", "worker"]'
    assert [rest for word, rest in instructions() if word == "FROM"] == [
        "${PYTHON} AS build",
        "${PYTHON}",
    ]
    assert ("ARG", "THREEFOLD_TORCH_INDEX") in instructions()


def test_what_is_copied_is_enough_to_build_the_package(tmp_path: Path) -> None:
    """Without a Docker engine, the part of the build that depends on our files."""
    context = tmp_path / "context"
    for source, target in copied():
        if target.startswith("/"):
            continue  # a script for the last stage
        goal = context / target / Path(source).name if target[-1] in "./" else context / target
        goal.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (CHECKOUT / source).is_dir() else shutil.copy)(CHECKOUT / source, goal)

    checked("hatchling", "build", "--target", "wheel", "--directory", tmp_path, at=context)

    assert len(list(tmp_path.glob("threefold-*.whl"))) == 1


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All manifests as they would be applied."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl here")
    path = tmp_path_factory.mktemp("kubernetes") / "all.yaml"
    path.write_text(checked("kubectl", "kustomize", KUBERNETES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def resources(manifests: Path) -> dict[str, dict[str, Any]]:
    """Each resource by kind and name."""
    found = documents(manifests.read_text(encoding="utf-8"))
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, "1.37"])
def test_the_manifests_fit_their_schemas(manifests: Path, version: str) -> None:
    """Those of Kubernetes, strictly: a misspelt field is ignored there in silence."""
    said = checked("kubernetes-validate", "--strict", "-k", version, manifests)

    assert said.count(" passed for resource ") == 11


def pods(resources: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod that each Deployment and CronJob makes."""
    found = {}
    for name, resource in resources.items():
        spec = resource.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            found[name] = template["spec"]
    return found


def test_every_pod_is_restricted(resources: dict[str, dict[str, Any]]) -> None:
    """The namespace enforces it, so a pod that isn't would never start."""
    assert set(pods(resources)) == {
        "Deployment/api",
        "Deployment/worker",
        "CronJob/rebuild-daily",
        "CronJob/rebuild-hourly",
    }
    for pod in pods(resources).values():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert set(container["resources"]) == {"requests", "limits"}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_secrets_are_referred_to(resources: dict[str, dict[str, Any]]) -> None:
    """None is in a manifest, and every file that a setting names is one that the runbook makes."""
    settings = next(one for name, one in resources.items() if name.startswith("ConfigMap/"))["data"]
    named = {Path(value).name for value in settings.values() if value.startswith("/run/threefold/")}
    command = re.search(r"create secret generic threefold \\\n(.*\n.*)\n", TEXTS["RUNBOOK.md"])

    assert not [name for name in resources if name.startswith("Secret/")]
    assert not {f"THREEFOLD_{one.upper()}" for one in secret_names()} & set(settings) - {
        "THREEFOLD_ELASTICSEARCH_URL"
    }
    assert command is not None
    made = set(re.findall(r"--from-file=(\S+)", command[1]))
    assert made == named | {"postgres-ca.crt"}


def test_the_settings_of_the_pods_can_be_read(
    resources: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """By the one reader of settings, with the secrets as files."""
    settings = next(one for name, one in resources.items() if name.startswith("ConfigMap/"))["data"]
    secret = tmp_path / "secret"
    secret.write_text("hush\n", encoding="utf-8")
    given = {
        name: str(secret) if name.endswith("_FILE") else value for name, value in settings.items()
    }

    read = load_settings(environment=given)

    assert (read.database_url, read.elasticsearch_password) == ("hush", "hush")
    assert (read.vector_backend, read.elasticsearch_replicas) == ("elasticsearch", 1)


def test_scheduled_jobs_do_not_pile_up(resources: dict[str, dict[str, Any]]) -> None:
    """They offer periods; two at once would only be in each other's way."""
    jobs = [one["spec"] for name, one in resources.items() if name.startswith("CronJob/")]

    assert len(jobs) == 2
    assert {job["concurrencyPolicy"] for job in jobs} == {"Forbid"}
    assert {job["timeZone"] for job in jobs} == {"Etc/UTC"}


def test_a_drained_node_takes_not_all(resources: dict[str, dict[str, Any]]) -> None:
    """Budgets, probes and selectors have to be about pods that there are."""
    for name in ("api", "worker"):
        deployment = resources[f"Deployment/{name}"]["spec"]
        budget = resources[f"PodDisruptionBudget/{name}"]["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        (container,) = deployment["template"]["spec"]["containers"]

        assert deployment["replicas"] > budget["maxUnavailable"]
        assert budget["selector"]["matchLabels"].items() <= labels.items()
        assert {"startupProbe", "livenessProbe"} <= set(container)
    labels = resources["Deployment/api"]["spec"]["template"]["metadata"]["labels"]
    assert resources["Service/api"]["spec"]["selector"].items() <= labels.items()


def test_the_pod_is_the_same_for_both_kinds() -> None:
    """It has to be said twice, for the two kinds hold a pod at different depths."""
    deployment = documents(TEXTS["kubernetes/pod_of_deployments.yaml"])[0]["spec"]
    cronjob = documents(TEXTS["kubernetes/pod_of_cronjobs.yaml"])[0]["spec"]["jobTemplate"]["spec"]

    assert deployment["template"] == cronjob["template"]
