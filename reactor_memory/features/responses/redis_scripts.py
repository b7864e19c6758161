"""What the Redis backend does in one step: scripts that the server runs.

Each answers with one word, then fields and values. The word is empty for the response as it stands (no fields: there is
none). All keys of a conversation share its hash tag, so that a script meets them on one node of a cluster.

A piece is an entry `<event>-0` of the stream of its response. What else changes adds an entry `<event>-<n>`, `n` > 0,
for whoever waits for an entry.
"""

_COMMON = """
local function standing(response)
    return {'', unpack(redis.call('HGETALL', response))}
end
local function is_running(response, now)
    local state, expires_at = unpack(redis.call('HMGET', response, 'state', 'expires_at'))
    return state == 'running' and tonumber(expires_at) > tonumber(now)
end
local function is_open(response, client_id, fence, now)
    local owner, current = unpack(redis.call('HMGET', response, 'client_id', 'fence'))
    return is_running(response, now) and owner == client_id and current == fence
end
local function change(response, pieces, ...)
    redis.call('HSET', response, ...)
    redis.call('XADD', pieces, redis.call('HGET', response, 'last_event') .. '-*', 'changed', '')
end
local function keep(milliseconds, ...)
    for _, key in ipairs({...}) do redis.call('PEXPIRE', key, milliseconds) end
end
"""

START = (
    _COMMON
    + """
local listed, fences, response, pieces = unpack(KEYS)
local id, responses_of, pieces_of, now, keep_until, final_ttl, ttl = unpack(ARGV)
if redis.call('EXISTS', response) == 1 then return standing(response) end
local oldest = redis.call('ZRANGE', listed, 0, 0)[1]
while oldest and redis.call('EXISTS', responses_of .. oldest) == 0 do
    redis.call('ZREM', listed, oldest)
    oldest = redis.call('ZRANGE', listed, 0, 0)[1]
end
local newest = redis.call('ZREVRANGE', listed, 0, 0)[1]
if newest and is_running(responses_of .. newest, now) then
    local older, its_pieces = responses_of .. newest, pieces_of .. newest
    change(older, its_pieces, 'state', 'superseded', 'updated_at', now, 'expires_at', keep_until)
    keep(final_ttl, older, its_pieces)
end
local fence = redis.call('INCR', fences)
redis.call('HSET', response, 'fence', fence, unpack(ARGV, 8))
redis.call('ZADD', listed, fence, id)
keep(ttl, listed, fences, response)
return standing(response)
"""
)

APPEND = (
    _COMMON
    + """
local listed, fences, response, pieces = unpack(KEYS)
local client_id, fence, now, expires_at, ttl = unpack(ARGV, 1, 5)
local first_event, max_events, max_size = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
if not is_open(response, client_id, fence, now) then return standing(response) end
local last_event = tonumber(redis.call('HGET', response, 'last_event'))
local size = tonumber(redis.call('HGET', response, 'size'))
if first_event > last_event + 1 then return {'gap', 'last_event', tostring(last_event)} end
local new = 9 + last_event + 1 - first_event
for place = new, #ARGV do size = size + #ARGV[place] end
local newest = last_event + math.max(0, #ARGV - new + 1)
if newest > max_events or size > max_size then
    return {'large', 'last_event', string.format('%d', newest), 'size', string.format('%d', size)}
end
for place = new, #ARGV do
    last_event = last_event + 1
    redis.call('XADD', pieces, string.format('%d-0', last_event), 'text', ARGV[place])
end
redis.call('HSET', response, 'last_event', string.format('%d', last_event), 'size', string.format('%d', size),
           'updated_at', now, 'expires_at', expires_at)
keep(ttl, listed, fences, response, pieces)
return standing(response)
"""
)

FINISH = (
    _COMMON
    + """
local response, pieces = unpack(KEYS)
local client_id, fence, now, ttl = unpack(ARGV, 1, 4)
if is_open(response, client_id, fence, now) then
    change(response, pieces, 'updated_at', now, unpack(ARGV, 5))
    keep(ttl, response, pieces)
end
return standing(response)
"""
)

STOP = (
    _COMMON
    + """
local response, pieces = unpack(KEYS)
local now = ARGV[1]
if is_running(response, now) and redis.call('HGET', response, 'stop_requested') == '0' then
    change(response, pieces, 'stop_requested', 1, 'updated_at', now)
    redis.call('PEXPIRE', pieces, redis.call('PTTL', response))
end
return standing(response)
"""
)

FORGET = """
local listed = KEYS[1]
local responses_of, pieces_of = unpack(ARGV)
local wanted = {}
for place = 3, #ARGV do wanted[ARGV[place]] = true end
for _, id in ipairs(redis.call('ZRANGE', listed, 0, -1)) do
    local message_id = redis.call('HGET', responses_of .. id, 'message_id')
    if #ARGV == 2 or (message_id and wanted[message_id]) then
        redis.call('DEL', responses_of .. id, pieces_of .. id)
        redis.call('ZREM', listed, id)
    end
end
"""
