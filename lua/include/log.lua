-- uses: int
-- Writes one event. Its sequence is its stream id, so the server itself refuses a second one with the same number.
-- The classes with the short retention are in the log only; core/event.py has the same list. `at` is a number, or its text where a whole
-- batch shares it: this is the innermost loop of all there is.
local function write_event(log, audit, sequence, at, kind, payload, scope)
  local id, stamp = string.format('%d-0', sequence), type(at) == 'string' and at or int(at)
  local kept = kind ~= 'message.delta' and kind ~= 'reasoning.delta' and kind ~= 'tool.progress'
  if scope and scope ~= '' then
    redis.call('XADD', log, id, 'type', kind, 'at', stamp, 'payload', payload, 'scope', scope)
    if kept then
      redis.call('XADD', audit, id, 'type', kind, 'at', stamp, 'payload', payload, 'scope', scope)
    end
    return
  end
  redis.call('XADD', log, id, 'type', kind, 'at', stamp, 'payload', payload)
  if kept then
    redis.call('XADD', audit, id, 'type', kind, 'at', stamp, 'payload', payload)
  end
end
