/**
 * What is done in Redis itself. A script is atomic: nobody sees or changes a
 * record while it runs. Each changes a record by one command, since a script that
 * fails half-way is not rolled back.
 *
 * A record is a HASH without expiry, so that its version outlives its lease and
 * policies that evict only keys with expiry never touch it:
 *
 *   v  version    r  text    x  end of the lease by the server's clock, or empty
 *   t  ttl        w  id of the last write    i  replication id of the server that took it
 */
import { createHash } from "node:crypto";

export interface Script {
  readonly text: string;
  readonly sha: string;
}

export function script(text: string): Script {
  const trimmed = text.trim();
  return { text: trimmed, sha: createHash("sha1").update(trimmed).digest("hex") };
}

/**
 * KEYS: 1 the record; 2 the epoch (absent in a cluster: kept in the record then).
 * ARGV: 1 expected version, empty if none; 2 text; 3 ttl in ms, empty if none;
 *       4 channel; 5 id of this write; 6 "1" if it takes a lease over;
 *       7 "1" for quarantine.
 *
 * Answers nil: not current, not written. {"written", version, "1" if the server
 * tells its replication id}. {"wait", ms}: in quarantine, not written.
 *
 * A client or a proxy may send a command again after its connection was lost. The
 * id of the write lets the second one answer what the first did.
 *
 * Quarantine: a server that was started or promoted may have lost the newest
 * writes, and with them a lease that somebody still counts on. A record that was
 * written in the present life of the server (its replication id is the same) is
 * not older than what was acknowledged. Any other is taken over only when the
 * server has been primary for a ttl. How long it has been is not told; it counts
 * from the first write here that met this id, or from the start of a server that
 * never was a replica and that nobody has used before.
 */
export const WRITE = script(`
local cur = redis.call('HMGET', KEYS[1], 'v', 'r', 'w', 'i', 't')
if cur[1] and cur[3] == ARGV[5] then return {'written', cur[1], '1'} end
if (cur[1] or '') ~= ARGV[1] then return false end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id = ''
if ARGV[7] == '1' then
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' then id = string.match(info, 'master_replid:(%x+)') or '' end
  if id ~= '' and id ~= cur[4] then
    local at = KEYS[2] or KEYS[1]
    local known = redis.call('HMGET', at, 'qi', 'qs')
    local since = known[1] == id and tonumber(known[2])
    if not since then
      since = now
      local before = string.match(info, 'master_replid2:(%x+)') or '0'
      if not known[1] and string.match(before, '^0+$') then
        local server = redis.pcall('INFO', 'server')
        local up = type(server) == 'string' and string.match(server, 'uptime_in_seconds:(%d+)')
        if up then since = now - up * 1000 end
      end
      redis.call('HSET', at, 'qi', id, 'qs', string.format('%.0f', since))
    end
    if ARGV[6] == '1' then
      local wait = since + math.max(tonumber(ARGV[3]) or 0, tonumber(cur[5]) or 0) - now
      if wait > 0 then return {'wait', string.format('%.0f', wait)} end
    end
  end
end
local v = (cur[1] and tonumber(cur[1]) or 0) + 1
if v < now then v = now end
local version = string.format('%.0f', v)
local x = ARGV[3] ~= '' and string.format('%.0f', now + ARGV[3]) or ''
redis.call('HSET', KEYS[1], 'v', version, 'r', ARGV[2], 'x', x, 't', ARGV[3], 'w', ARGV[5], 'i', id)
if cur[2] ~= ARGV[2] then redis.pcall('PUBLISH', ARGV[4], version .. ' ' .. ARGV[3] .. ' ' .. ARGV[2]) end
return {'written', version, id ~= '' and '1' or '0'}
`);

/** KEYS: 1 the record. Answers nil, or {version, text, ms left by the server's clock, or empty}. */
export const READ = script(`
local e = redis.call('HMGET', KEYS[1], 'v', 'r', 'x')
if not e[1] then return false end
if not e[3] or e[3] == '' then return {e[1], e[2], ''} end
local time = redis.call('TIME')
return {e[1], e[2], string.format('%.0f', e[3] - (time[1] * 1000 + math.floor(time[2] / 1000)))}
`);

/**
 * The layout of redlock and ShedLock: a STRING that expires, free if absent.
 * KEYS: 1 the lock. ARGV: 1 the value that must be there, empty if none; 2 the
 * new value, without its number; empty to delete; 3 ttl in ms; 4 channel; 5 lowest number.
 * Answers nil or the number: microseconds by the server's clock, put before the value.
 * A value that is there already was written by this very term, if the command was sent twice.
 */
export const LOCK_WRITE = script(`
local cur = redis.call('GET', KEYS[1])
if (cur or '') ~= ARGV[1] then
  local number, text = string.match(cur or '', '^(%d+) (.*)$')
  if number and text == ARGV[2] then return number end
  return false
end
local time = redis.call('TIME')
local n = math.max(time[1] * 1000000 + time[2], tonumber(ARGV[5]))
local number = string.format('%.0f', n)
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], number .. ' ' .. ARGV[2], 'PX', ARGV[3]) end
if ARGV[4] ~= '' then redis.pcall('PUBLISH', ARGV[4], number) end
return number
`);

/** KEYS: 1 the lock. Answers nil, or {value, ms left, microseconds by the server's clock}. */
export const LOCK_READ = script(`
local value = redis.call('GET', KEYS[1])
if not value then return false end
local time = redis.call('TIME')
return {value, redis.call('PTTL', KEYS[1]), string.format('%.0f', time[1] * 1000000 + time[2])}
`);

/**
 * KEYS: 1 the record. ARGV: 1 the expected version. Answers 1: removed; 0: it has
 * another version, or one that the server's clock has not reached, so that the one
 * that follows might be lower.
 */
export const REMOVE = script(`
local v = redis.call('HGET', KEYS[1], 'v')
if (v or '') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
if tonumber(v) >= time[1] * 1000 + math.floor(time[2] / 1000) then return 0 end
redis.call('DEL', KEYS[1])
return 1
`);
