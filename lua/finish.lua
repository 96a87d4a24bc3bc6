-- finish: the owner ends its run. The first terminal writer wins; a later one is told what is stored.
-- keys: run log audit effects snapshot queue timers bell
-- args: id group fence state payload
-- reply: OK state disposition sequence | SEEN state disposition sequence | FENCED | CLOSED state
-- uses: clock ending
-- `state` cancelled needs a request; its payload is made here, from what was really committed.
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'cancel_version', 'receipts', 'disposition')
if r[2] ~= fence then
  return { 'FENCED' }
end
if r[1] == 'succeeded' or r[1] == 'failed' or r[1] == 'cancelled' then
  return { 'SEEN', r[1], r[6] or '', tonumber(r[3]) }
end
if r[1] ~= 'running' or (state == 'cancelled' and not r[4]) then
  return { 'CLOSED', r[1] }
end
local at, sequence = now_ms(), tonumber(r[3]) + 1
local disposition = ''
if state == 'cancelled' then
  disposition = tonumber(r[5] or 0) > 0 and 'cancelled_after_effect' or 'cancelled_before_effect'
  payload = '{"disposition":"' .. disposition .. '"}'
elseif r[4] then
  disposition = 'already_terminal'
end
local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell }
end_run(k, id, group, at, sequence, state, 'run.' .. state, payload, { 'disposition', disposition })
return { 'OK', state, disposition, sequence }
