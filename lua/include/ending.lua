-- uses: int log dequeue tell
-- Mutating calls of which nobody knows whether they took effect: how many, and those among them that the log does not say it of yet.
local function doubtful_calls(effects)
  local count, untold, all = 0, {}, redis.call('HGETALL', effects)
  for i = 1, #all, 2 do
    local status, owner, record = string.match(all[i + 1], '^(%S+) (%S+) %d+ (.*)$')
    -- Decoded for a name and a flag only: nothing that came through cjson is carried on as a payload.
    local call = (status == 'intent' or status == 'unresolved') and cjson.decode(record)
    if call and call.mutating then
      count = count + 1
      if status == 'intent' then
        untold[#untold + 1] = { id = all[i], tool = call.tool, owner = owner, record = record }
      end
    end
  end
  table.sort(untold, function(a, b) return a.id < b.id end)
  return count, untold
end

-- Ends a run: its last event, its state, the expiry of everything it owns, and what is still to be done for it, in one command.
-- An effect that may have happened is named `tool.unresolved` first, and a cancelled run that has one was not cancelled before it.
-- The log lives as long as the record until the terminal snapshot is stored: `checkpoint` shortens it then, so that a text that only
-- its deltas carry is never lost because nobody was there to fold it, however short the run's retention is.
-- `k` has the keys run log audit effects snapshot queue timers bell, and where there is a session: session session_log open lapses. The
-- caller has passed every guard. Returns sequence, disposition.
local function end_run(k, id, group, at, sequence, state, payload)
  local r = redis.call('HMGET', k.run, 'entry', 'retain_events', 'retain_run', 'listed_in', 'idempotency', 'fingerprint', 'cancel_version',
    'receipts')
  local first = sequence + 1
  local doubtful, untold = doubtful_calls(k.effects)
  for _, call in ipairs(untold) do
    sequence = sequence + 1
    write_event(k.log, k.audit, sequence, at, 'tool.unresolved',
      '{"tool_call_id":' .. cjson.encode(call.id) .. ',"tool":' .. cjson.encode(call.tool) .. ',"why":"run_ended"}')
    redis.call('HSET', k.effects, call.id, 'unresolved ' .. call.owner .. ' ' .. int(sequence) .. ' ' .. call.record)
  end
  local disposition = ''
  if state == 'cancelled' then
    disposition = (tonumber(r[8] or 0) > 0 or doubtful > 0) and 'cancelled_after_effect' or 'cancelled_before_effect'
    payload = '{"disposition":"' .. disposition .. '"}'
  elseif r[7] then
    disposition = 'already_terminal'
  end
  sequence = sequence + 1
  write_event(k.log, k.audit, sequence, at, 'run.' .. state, payload)
  redis.call('HSET', k.run, 'state', state, 'sequence', int(sequence), 'finished_at', int(at), 'last_activity_at', int(at),
    'disposition', disposition, 'unresolved', doubtful)
  redis.call('HDEL', k.run, 'entry', 'lease_until', 'wait_id', 'wait_mode', 'wait_until', 'resume')
  dequeue(k.queue, group, r[1])
  local events_until, run_until = int(at + tonumber(r[2])), int(at + tonumber(r[3]))
  redis.call('PEXPIREAT', k.log, run_until)
  redis.call('PEXPIREAT', k.audit, events_until)
  redis.call('PEXPIREAT', k.run, run_until)
  redis.call('PEXPIREAT', k.effects, run_until)
  redis.call('PEXPIREAT', k.snapshot, run_until)
  redis.call('ZREM', k.timers, 'lease:' .. id, 'wait:' .. id, 'retry:' .. id, 'trim:' .. id)
  redis.call('ZADD', k.timers, int(at), 'seal:' .. id, run_until, 'forget:' .. id .. ' ' .. r[4])
  if r[5] then
    redis.call('ZADD', k.timers, int(at), 'key:' .. id .. ' ' .. r[5] .. ' ' .. r[6])
  end
  local place = tell(k.bell, k.session, k.session_log, id, first, sequence, at)
  if k.session then
    local name = string.sub(k.session, -30)
    redis.call('ZREM', k.open, id)
    -- From then on nothing up to here can be replayed in the session.
    redis.call('ZADD', k.lapses, 'LT', events_until, int(place))
    redis.call('ZADD', k.timers, events_until, 'lapse:' .. id .. ' ' .. name)
    if redis.call('HGET', k.session, 'policy') and redis.call('EXISTS', k.open) == 1 then
      redis.call('ZADD', k.timers, int(at), 'turn:' .. id .. ' ' .. name)
    end
  end
  return sequence, disposition
end
