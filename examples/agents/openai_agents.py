"""An agent of the OpenAI Agents SDK; the pack's tools reach it over MCP.

    pip install openai-agents
    scoresheet run PACK --agent 'python3 examples/agents/openai_agents.py' --seat laptop-a --model openai=URL

Tracing, which would send every run to the SDK's own makers, is off, and so are retries. The model, its temperature and
its seed are those that the card pins.
"""

import asyncio
import json
import os
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner
from agents.mcp import MCPServerStreamableHttp, MCPServerStreamableHttpParams
from openai import AsyncOpenAI


async def main() -> None:
    task = json.load(sys.stdin)
    settings = ModelSettings(
        temperature=float(os.environ["SCORESHEET_TEMPERATURE"]),
        extra_args={"seed": int(os.environ["SCORESHEET_SEED"])},
    )
    client = AsyncOpenAI(max_retries=0, timeout=600)  # address and key are in the environment
    model = OpenAIChatCompletionsModel(os.environ["SCORESHEET_MODEL"], client)
    door = MCPServerStreamableHttpParams(url=os.environ["SCORESHEET_MCP_URL"])
    async with MCPServerStreamableHttp(door, name="replay", cache_tools_list=True) as replay:
        agent = Agent("example", instructions="Answer with one JSON object, on one line.", model=model)
        agent = agent.clone(model_settings=settings, mcp_servers=[replay])
        limits = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, task["prompt"], max_turns=task["limits"]["max_tool_calls"], run_config=limits)
    print(result.final_output)  # the last line on stdout is the answer


if __name__ == "__main__":
    asyncio.run(main())
