-- uses: int log dequeue bell
-- Ends a run: its last event, its state, the expiry of everything it owns, and what is still to be done for it, in one command.
-- The log keeps the long expiry until the terminal snapshot is stored: the command `checkpoint` shortens it then, so that a
-- text that only its deltas carry is never lost because nobody was there to fold it.
-- `k` has the keys run log audit effects snapshot queue timers bell; the caller has passed every guard.
local function end_run(k, id, group, at, sequence, state, kind, payload, fields)
  local r = redis.call('HMGET', k.run, 'entry', 'retain_events', 'retain_run', 'listed_in', 'idempotency', 'fingerprint')
  write_event(k.log, k.audit, sequence, at, kind, payload)
  redis.call('HSET', k.run, 'state', state, 'sequence', int(sequence), 'finished_at', int(at), 'last_activity_at', int(at), unpack(fields))
  redis.call('HDEL', k.run, 'entry', 'lease_until', 'wait_id', 'wait_mode', 'wait_until', 'resume')
  dequeue(k.queue, group, r[1])
  local events_until, run_until = int(at + tonumber(r[2])), int(at + tonumber(r[3]))
  redis.call('PEXPIREAT', k.log, events_until)
  redis.call('PEXPIREAT', k.audit, events_until)
  redis.call('PEXPIREAT', k.run, run_until)
  redis.call('PEXPIREAT', k.effects, run_until)
  redis.call('PEXPIREAT', k.snapshot, run_until)
  redis.call('ZREM', k.timers, 'wait:' .. id, 'retry:' .. id)
  redis.call('ZADD', k.timers, int(at), 'seal:' .. id, run_until, 'forget:' .. id .. ' ' .. r[4])
  if r[5] then
    redis.call('ZADD', k.timers, int(at), 'key:' .. id .. ' ' .. r[5] .. ' ' .. r[6])
  end
  ring(k.bell, id)
end
