"""Command groups that are imported on first use."""

from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_group


def lazily(module: str, default: str | None = None) -> type[TyperGroup]:
    """Returns a command group that imports its commands on first use.

    `module` is the name of a module in this package. The module's variable `app` defines the
    commands. `default` is the command that runs if the user does not name a command.
    """

    class LazyGroup(TyperGroup):
        _is_loaded = False

        def _load(self) -> None:
            if not self._is_loaded:
                self._is_loaded = True
                found = get_group(import_module(f".{module}", __package__).app)
                self.commands.update(found.commands)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
            is_named = bool(args) and (args[0] == "--help" or not args[0].startswith("-"))
            return super().parse_args(ctx, args if is_named or not default else [default, *args])

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 (typer's type is private)
            self._load()
            return super().list_commands(ctx)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
            self._load()
            return super().get_command(ctx, cmd_name)

    return LazyGroup
