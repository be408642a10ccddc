"""`quire completion`: print shell scripts that complete verbs, options, files, documents, inputs, models and run
ids."""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from quire.cli.completers import NOTHING, PART, complete_run

__all__ = ["COMPLETE_VARIABLE", "SHELLS", "command", "complete_run"]

COMPLETE_VARIABLE = "_QUIRE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_LINE, _BREAKS = "_QUIRE_LINE", "_QUIRE_BREAKS"

# Bash splits words at = and :, so the whole line is passed. Readline completes files by itself only if nothing else
# was found; if names were found, they and the files are offered together.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line files= cur="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    for line in $(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \\
            _QUIRE_LINE="${COMP_LINE:0:${COMP_POINT:-0}}" _QUIRE_BREAKS="$COMP_WORDBREAKS" \\
            %(complete_var)s=bash_complete "$1"); do
        case "${line%%%%,*}" in
            file|dir) files=yes ;;
            part) compopt -o nospace; COMPREPLY+=("${line#*,}") ;;
            *) COMPREPLY+=("${line#*,}") ;;
        esac
    done
    if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o default
    elif [[ $files ]]; then
        compopt -o filenames
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


# The word continues after an item of the type `part`, so no space is added.
_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local type key descr
    local -a response plain described parts described_parts
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s)}")
    for type key descr in ${response}; do
        case "$type$descr" in
            dir*) _path_files -/ ;;
            file*) _path_files -f ;;
            part_) parts+=("$key") ;;
            part*) described_parts+=("$key:$descr") ;;
            plain_) plain+=("$key") ;;
            plain*) described+=("$key:$descr") ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#plain )) && compadd -U -V unsorted -a plain
    (( $#described_parts )) && _describe -V unsorted described_parts -U -S ''
    (( $#parts )) && compadd -U -V unsorted -S '' -a parts
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

# Fish itself adds no space after `=`, `/` and `:`.
_FISH = """\
function %(complete_func)s;
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \\
        %(prog_name)s);
    for completion in $response;
        set -l item (string split -m 1 "," $completion);
        switch $item[1];
            case dir;
                __fish_complete_directories $item[2];
            case file;
                __fish_complete_path $item[2];
            case plain;
                echo $item[2];
        end;
    end;
end;

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)";
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes verbs, options, files, documents, models and runs.

    \b
    bash   eval "$(quire completion bash)"       in ~/.bashrc
    zsh    eval "$(quire completion zsh)"        in ~/.zshrc
    fish   quire completion fish | source        in ~/.config/fish/config.fish
    """
    completer = _CLASSES[shell](context.find_root().command, {}, "quire", COMPLETE_VARIABLE)
    # Call the method of the base class: that of the bash class starts a bash to ask for its version.
    click.echo(ShellComplete.source(completer), nl=False)


class _OrFiles(ShellComplete):
    """Complete files where an argument or the value of an option has no completions of its own."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        if items or not args or incomplete.startswith("-"):
            return [item for item in items if item.type != NOTHING]
        return [CompletionItem(incomplete, type="file")]


class _Bash(_OrFiles, BashComplete):
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get(_LINE, "")
        if not line:
            return super().get_completion_args()
        words = split_arg_string(line)[1:]
        if line[-1:].isspace() or not words:
            return words, ""
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        breaks = os.environ.get(_BREAKS, "")
        torn = max((incomplete.rfind(sign) for sign in "=:" if sign in breaks), default=-1) + 1
        for item in items:
            if item.type != "file":
                item.value = item.value[torn:].replace(" ", "\\ ")
        return items


class _Zsh(_OrFiles, ZshComplete):
    source_template = _ZSH


class _Fish(_OrFiles, FishComplete):
    source_template = _FISH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        items = super().get_completions(args, incomplete)
        for item in items:
            item.type = "plain" if item.type == PART else item.type
        return items


_CLASSES: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def install() -> None:
    """Register these classes with click, so that it uses them to answer the shells."""
    for name, shell in _CLASSES.items():
        add_completion_class(shell, name)
