-- uses: int
-- The class with the short retention; core/event.py has the same list.
local DELTA = { ['message.delta'] = true, ['reasoning.delta'] = true, ['tool.progress'] = true }

-- Writes one event. Its sequence is its stream id, so the server itself refuses a second one with the same number.
local function write_event(log, audit, sequence, at, kind, payload, scope)
  local id = int(sequence) .. '-0'
  local stamp = int(at)
  local streams = DELTA[kind] and { log } or { log, audit }
  for _, stream in ipairs(streams) do
    if scope and scope ~= '' then
      redis.call('XADD', stream, id, 'type', kind, 'at', stamp, 'payload', payload, 'scope', scope)
    else
      redis.call('XADD', stream, id, 'type', kind, 'at', stamp, 'payload', payload)
    end
  end
end
