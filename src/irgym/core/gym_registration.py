"""Registers the environments with Gymnasium, which calls this through its plug-in entry point."""


def register() -> None:
    """Register every environment as `irgym/<Id>`."""
    from gymnasium.envs.registration import register as register_with_gymnasium

    register_with_gymnasium(
        id="Loops-v0", entry_point="irgym.core.env:TaskEnv", kwargs={"environment": "loops"}
    )
