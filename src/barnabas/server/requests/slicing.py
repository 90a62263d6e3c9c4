"""Handle a request with many items slice by slice, so that other clients are served in between.

Handlers are not aware of this: each call gets a request with a part of the list. Answers are encoded as they
come, so that the whole response never exists as objects. The API's row names the list to split.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.protocol.apis import api as messages_of
from barnabas.protocol.exchange import Request
from barnabas.protocol.schema.pieces import ResponsePieces
from barnabas.server.requests.api import CLOSE, NO_ANSWER, Api, Context, EncodedBody, Later, NoAnswer
from barnabas.server.requests.error_messages import cut_all_messages, cut_messages
from barnabas.server.requests.long_requests import ClientGone, LongRequests
from barnabas.server.requests.slices import Slices


async def answer_in_slices(
    api: Api,
    slices: Slices,
    ctx: Context,
    request: Request,
    turns: LongRequests,
    is_gone: Callable[[], bool],
) -> object:
    """Return the answer to a whole request. `is_gone` reports whether its client has disconnected."""
    pieces = ResponsePieces(messages_of(api.key).response, request.version, slices.answers[0])
    shell: Any = None
    # The answer to the last item of a slice: the next slice may continue that item.
    last: list[Any] = []
    closes = False
    for body in slices.split(request.body):
        part = Request(request.api, request.version, request.correlation_id, request.client_id, body)
        answer: Any = await settled(api.handle(ctx, part))
        if isinstance(answer, NoAnswer):
            closes = closes or answer.closes
        elif getattr(answer, "error_code", 0):
            # The request failed as a whole: return this response.
            return answer
        else:
            cut_all_messages(getattr(answer, slices.answers[0]))
            found = slices.join(last, getattr(answer, slices.answers[0]))
            last = found[-1:]
            if shell is None:
                shell = answer
            else:
                slices.merge(shell, answer)
            await turns.run(pieces.add(found[:-1]))
        if not slices.is_change and is_gone():
            raise ClientGone
        await turns.pause()
    if shell is None:
        return CLOSE if closes else NO_ANSWER
    await turns.run(pieces.add(last))
    return EncodedBody(pieces.parts(shell))


async def encode_in_steps(
    api: Api, request: Request, answer: Any, turns: LongRequests, is_gone: Callable[[], bool]
) -> EncodedBody:
    """Encode a response with a long list."""
    name = api.long_list(answer)
    assert name is not None, api.key
    pieces = ResponsePieces(type(answer), request.version, name)
    cut_messages(answer)
    await turns.run(pieces.add(getattr(answer, name)), is_gone)
    return EncodedBody(pieces.parts(answer))


async def settled(answer: Any) -> Any:
    """Wait for the answer of a handler, in whichever of the three forms it came."""
    if isinstance(answer, Later):
        come = asyncio.get_running_loop().create_future()
        answer.then_call(lambda given: None if come.done() else come.set_result(given))
        return await come
    if isinstance(answer, Awaitable):
        return await answer
    return answer
