"""Twenty agents in one worker."""

from reattach import Agents, Run

agents = Agents()


async def nothing(run: Run) -> str:
    """Ends at once."""
    return run.agent


for number in range(20):
    agents.agent(f"agent{number}")(nothing)
