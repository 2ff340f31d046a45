"""`bayplan completion`: scripts that complete commands, options, and names of pods and nodes in a shell.

The scripts run `bayplan __complete WORD...`, whose last word is the one at the cursor. It prints a candidate a line,
with a tab before its description, and last `:4`, or `:0` where files are candidates too: what kubectl expects of
`kubectl_complete-bayplan`, which completes `kubectl bayplan`. What does not answer within a second has no candidates.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bayplan.cli.targets import KINDS

if TYPE_CHECKING:
    from bayplan.cli.scheduler_client import SchedulerOptions

__all__ = ["Candidate", "candidates", "completion", "kubectl_complete", "print_candidates"]

EXAMPLES = """\
source <({program} completion bash)
{program} completion zsh > "${{fpath[1]}}/_bayplan"
{program} completion fish > ~/.config/fish/completions/bayplan.fish
"""
Candidate = tuple[str, str]
"""A word and what it stands for; the word is empty where files are candidates."""
FILES: list[Candidate] = [("", "")]
_PATIENCE_SECONDS = 1.0
_MOST_NAMES = 200

_BASH = """\
_bayplan() {
  local line word
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :4) ;;
      :0) COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")) ;;
      *) word="${line%%$'\\t'*}"; COMPREPLY+=("$word") ;;
    esac
  done < <(bayplan __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == */ ]] && compopt -o nospace
}
complete -F _bayplan bayplan
"""
_ZSH = """\
#compdef bayplan
_bayplan() {
  local line
  local -a found
  while IFS= read -r line; do
    case "$line" in
      :4) ;;
      :0) _files ;;
      *) found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
    esac
  done < <(bayplan __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && _describe bayplan found
}
if [ "$funcstack[1]" = "_bayplan" ]; then _bayplan; else compdef _bayplan bayplan; fi
"""
_FISH = """\
function __bayplan_complete
    set -l found (bayplan __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    for line in $found[1..-2]
        echo $line
    end
    test "$found[-1]" = ":0"; and __fish_complete_path (commandline -ct)
end
complete -c bayplan -f -a '(__bayplan_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell")], /) -> int:
    """Print a script that completes commands, options, and names of pods, nodes, namespaces and contexts.

    Installed with pip, `kubectl bayplan` completes too: kubectl finds `kubectl_complete-bayplan` beside it.
    """
    sys.stdout.write(_SCRIPTS[shell])
    return 0


def kubectl_complete() -> None:
    """The entry point that kubectl runs to complete `kubectl bayplan`."""
    sys.exit(print_candidates(sys.argv[1:]))


def print_candidates(words: Sequence[str]) -> int:
    """`words` are those after the program, the last of them at the cursor."""
    found: list[Candidate] = []
    with contextlib.suppress(Exception):
        # An error message would end up in the command line that is being typed.
        found = candidates(list(words) or [""])
    names = sorted({each for each in found if each[0]})
    sys.stdout.writelines(f"{word}\t{about}\n" if about else f"{word}\n" for word, about in names)
    sys.stdout.write(":0\n" if ("", "") in found else ":4\n")
    return 0


def candidates(words: list[str]) -> list[Candidate]:
    """Those that begin with the last word; `FILES` stands for files."""
    return [each for each in _all(words) if each == ("", "") or each[0].startswith(words[-1])]


def _all(words: list[str]) -> list[Candidate]:
    from bayplan.cli.main import COMMANDS

    commands = [(name, command.summary) for name, command in COMMANDS.items()]
    if len(words) == 1:
        return [*commands, ("help", "the help of a command"), ("--help", "the commands"), ("--version", "the version")]
    if words[0] == "help":
        return commands if len(words) == 2 else []
    if words[0] not in COMMANDS:
        return []
    return list(_of_command(words))


def _of_command(words: list[str]) -> Iterator[Candidate]:
    from bayplan.cli.main import make_app

    app, given = make_app(words[0], "bayplan")[words[0]], words[1:]
    inner = [name for name in app if not name.startswith("-")]
    if inner and len(given) > 1 and given[0] in inner:
        app, given, inner = app[given[0]], given[1:], []
    options = _options(app)
    before = given[-2] if len(given) > 1 else ""
    if before in options and options[before].parameter.metavar:
        yield from _values(options[before], before, words)
    elif given[-1].startswith("-"):
        for name, argument in options.items():
            yield name, argument.parameter.help or ""
        yield "--help", "the options"
    elif inner:
        for name in inner:
            yield name, (app[name].help or "").split("\n", 1)[0]
    else:
        yield from _positional(words[0], _arguments(given[:-1], options), given[-1], words)


def _options(app: Any) -> dict[str, Any]:
    """By each of their names; a command that only has commands has none."""
    if app.default_command is None:
        return {}
    arguments = app.assemble_argument_collection(parse_docstring=False)
    return {name: argument for argument in arguments for name in argument.names if name.startswith("-")}


def _arguments(given: Sequence[str], options: dict[str, Any]) -> list[str]:
    """Words that are neither options nor their values."""
    found, is_value = [], False
    for word in given:
        if is_value or word.startswith("-"):
            is_value = not is_value and word in options and bool(options[word].parameter.metavar)
        else:
            found.append(word)
    return found


def _values(argument: Any, name: str, words: list[str]) -> Iterator[Candidate]:
    choices = argument.get_choices() or ()
    if choices:
        yield from ((choice, "") for choice in choices)
    elif argument.parameter.metavar.startswith("NODE"):
        yield from _nodes(words)
    elif name in ("--namespace", "-n"):
        yield from _names_of("namespaces", words)
    elif name == "--context":
        yield from _contexts(words)
    elif argument.parameter.metavar in ("FILE", "FOLDER", "PLUGIN", "DEVICES"):
        yield from FILES


def _positional(command: str, before: list[str], word: str, words: list[str]) -> Iterator[Candidate]:
    if command == "completion" and not before:
        yield from ((shell, "") for shell in _SCRIPTS)
    elif command == "explain":
        yield from _explained(before, word, words)
    elif command in ("get", "delete"):
        yield from _resources(words) if not before else _names_of(before[0], words)


def _explained(before: list[str], word: str, words: list[str]) -> Iterator[Candidate]:
    kind, slash, _ = word.partition("/")
    if not before and not slash:
        yield from [("pod", "why it is where it is"), ("node", "what it holds"), ("pod/", ""), ("node/", "")]
        return
    wanted = KINDS.get(before[0] if before and "/" not in before[0] else kind, "")
    prefix = f"{kind}/" if slash and not (before and before[0] in KINDS) else ""
    found = _nodes(words) if wanted == "node" else _pods(words) if wanted == "pod" else ()
    for name, about in found:
        yield f"{prefix}{name}", about


# What a cluster has


def _given(words: list[str], *names: str) -> str | None:
    """The value of an option on this command line."""
    for place, word in enumerate(words[:-1]):
        for name in names:
            if word == name:
                return words[place + 1] or None
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None


def _scheduler(words: list[str]) -> SchedulerOptions:
    from bayplan.cli.scheduler_client import SchedulerOptions

    return SchedulerOptions(
        server=_given(words, "--server"),
        token_file=_given(words, "--token-file"),
        kubeconfig=_given(words, "--kubeconfig"),
        context=_given(words, "--context"),
        certificate_authority=_given(words, "--certificate-authority"),
        insecure_skip_tls_verify="--insecure-skip-tls-verify" in words,
    )


def _pods(words: list[str]) -> Iterator[Candidate]:
    """Of the scheduler that is asked, in the namespace of the command line or of the context."""
    from bayplan.cli.scheduler_client import namespace_of

    namespace = namespace_of(_scheduler(words), _given(words, "-n", "--namespace"))
    text = words[-1].rpartition("/")[2]
    answer = _ask(words, "/pods", {"namespace": namespace, "q": text, "limit": str(_MOST_NAMES)})
    for pod in answer["pods"]:
        yield pod["pod"].rpartition("/")[2], pod["state"]


def _nodes(words: list[str]) -> Iterator[Candidate]:
    answer = _ask(words, "/nodes", {})
    yield from zip(answer["names"], answer["zones"], strict=True)


def _ask(words: list[str], path: str, query: dict[str, str]) -> dict[str, Any]:
    from bayplan.cli.scheduler_client import ask_over, endpoint, transport_to

    where = endpoint(_scheduler(words))

    async def work() -> dict[str, Any]:
        transport = transport_to(where)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await ask_over(transport, where, path, dict[str, Any], query=query)
        finally:
            await transport.close()

    return asyncio.run(work())


def _resources(words: list[str]) -> Iterator[Candidate]:
    from bayplan.cli.cluster_access import connect

    async def work() -> list[Candidate]:
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            connect(_given(words, "--kubeconfig"), _given(words, "--context"), None) as cluster,
        ):
            return [(resource.plural, resource.api_version) for resource in await cluster.resources()]

    yield from asyncio.run(work())


def _names_of(kind: str, words: list[str]) -> Iterator[Candidate]:
    """Objects of a kind, from the API server."""
    import msgspec

    from bayplan.cli.cluster_access import connect

    async def work() -> list[Candidate]:
        kubeconfig, context = _given(words, "--kubeconfig"), _given(words, "--context")
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            connect(kubeconfig, context, _given(words, "-n", "--namespace")) as cluster,
        ):
            resource = await cluster.named(kind)
            path = resource.path(cluster.namespace)
            answer = msgspec.json.decode((await cluster.request("GET", path, query={"limit": "500"})).body)
            return [(item["metadata"]["name"], "") for item in answer["items"]]

    yield from asyncio.run(work())


def _contexts(words: list[str]) -> Iterator[Candidate]:
    import os

    from bayplan.cli.options import named_path
    from bayplan.client.kubeconfig_file import kubeconfig_paths, read_merged

    named = _given(words, "--kubeconfig")
    paths = [named_path(named)] if named else kubeconfig_paths(dict(os.environ))
    for name, context in read_merged(paths).contexts.items():
        yield name, context.cluster
