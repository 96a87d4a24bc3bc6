-- cancel: records a request to stop, and ends the run at once where no worker holds it.
-- keys: run log audit effects snapshot queue timers bell wake session? session_log? open? lapses?
-- args: id group key fingerprint requested
-- reply: DONE disposition sequence | PENDING version sequence | TERMINAL state sequence | REUSED | GONE
-- uses: clock int log tell ending
local r = redis.call('HMGET', run, 'state', 'sequence', 'cancel_version', 'cancel_key', 'cancel_fingerprint', 'disposition')
local state, sequence, version = r[1], tonumber(r[2]), tonumber(r[3] or 0)
if not state then
  return { 'GONE' }
end
local mine = key ~= '' and r[4] == key
if mine and r[5] ~= fingerprint then
  return { 'REUSED' }
end
if state == 'succeeded' or state == 'failed' or state == 'cancelled' then
  -- The caller whose request ended the run asks again because the answer was lost: it gets the same answer.
  if mine and state == 'cancelled' then
    return { 'DONE', r[6], sequence }
  end
  return { 'TERMINAL', state, sequence }
end
local at = now_ms()
if version == 0 then
  version, sequence = 1, sequence + 1
  write_event(log, audit, sequence, at, 'run.cancel_requested', requested)
  redis.call('HSET', run, 'cancel_version', version, 'cancel_key', key, 'cancel_fingerprint', fingerprint, 'sequence', int(sequence),
    'last_activity_at', int(at))
  tell(bell, session, session_log, id, sequence, sequence, at)
end
if state == 'running' then
  redis.call('XADD', wake, 'MAXLEN', '~', 1000, '*', 'cancel', id)
  return { 'PENDING', version, sequence }
end
local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell,
  session = session, session_log = session_log, open = open, lapses = lapses }
local last, disposition = end_run(k, id, group, at, sequence, 'cancelled')
return { 'DONE', disposition, last }
