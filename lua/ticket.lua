-- ticket: keeps what a ticket stands for, under the digest of it, for as long as it is good.
-- keys: ticket
-- args: facts ttl:int
-- reply: OK expires
-- uses: clock
redis.call('SET', ticket, facts, 'PX', ttl)
return { 'OK', now_ms() + ttl }
