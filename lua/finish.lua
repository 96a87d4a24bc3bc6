-- finish: the owner ends its run. The first terminal writer wins; a later one is told what is stored.
-- keys: run log audit effects snapshot queue timers bell session? session_log? open? lapses?
-- args: id group fence state payload
-- reply: OK state disposition sequence | SEEN state disposition sequence | FENCED | CLOSED state
-- uses: clock ending
-- `state` cancelled needs a request; its payload follows from what was really committed.
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'cancel_version', 'disposition')
if r[2] ~= fence then
  return { 'FENCED' }
end
if r[1] == 'succeeded' or r[1] == 'failed' or r[1] == 'cancelled' then
  return { 'SEEN', r[1], r[5] or '', tonumber(r[3]) }
end
if r[1] ~= 'running' or (state == 'cancelled' and not r[4]) then
  return { 'CLOSED', r[1] }
end
local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell,
  session = session, session_log = session_log, open = open, lapses = lapses }
local last, disposition = end_run(k, id, group, now_ms(), tonumber(r[3]), state, payload)
return { 'OK', state, disposition, last }
