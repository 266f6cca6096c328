/** Records as numbered files, on a disk that all processes share. */
import { decodeEnvelope, encodeEnvelope } from "../../backends/file/envelope.js";
import { fileBackend } from "../../backends/file/index.js";
import { encodeKey, FIRST, parseListing } from "../../backends/file/names.js";
import type { FileSystem } from "../../backends/file/fs.js";
import type { Backend } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { leasesOf } from "../../record/backend.js";
import { decodeLease, encodeLease } from "../../record/codec.js";
import { EVICTED_HOLDER } from "../../record/lease.js";
import type { LeaseRecord } from "../../record/lease.js";
import { Disk } from "./disk.js";
import { DiskCalls } from "./disk-calls.js";
import { Random } from "./random.js";
import { RecordMemory } from "./record-memory.js";
import type { Account } from "./record-memory.js";
import { ELECTION, forged, holderOf, isGrant, meeting, ordinary, own } from "./store-parts.js";
import type { Connection, Store, StoreOptions, Traffic } from "./store-parts.js";

const ROOM = "/sim";
const PLACE = `elections/${encodeKey(ELECTION)}`;
const SHELF = `${ROOM}/${PLACE}`;

export function fileStore({ plan, host, monitor, wrote }: StoreOptions): Store {
  const disk = new Disk(host, new Random(plan.seed, "store"));
  const grants = new Set<bigint>();
  /** Records may have lost their content: what nobody can read is shown with its number. */
  let powerLost = false;
  const writes: { readonly time: number; readonly vacant: boolean }[] = [];
  disk.onLink = (path, data, names) => {
    monitor.note(`store: link ${path}`);
    const { number, record } = decodeEnvelope(data, placeOf(path));
    if (path.startsWith(SHELF) && number !== null && isGrant(decodeLease(record))) grants.add(number);
    if (path.startsWith(`${ROOM}/records/`)) {
      // A number that came and went can come again; nobody takes it for the newest.
      const [newest] = parseListing(names).numbers;
      if (newest === undefined || newest === number) wrote(record);
      return;
    }
    writes.push({ time: host.scheduler.now, vacant: isVacated(decodeLease(record)) });
  };
  const newest = (): bigint | undefined => parseListing(disk.names(SHELF)).numbers[0];
  const token = (): bigint | undefined => {
    const number = newest();
    const data = disk.content(`${SHELF}/${number ?? FIRST}`);
    if (data === undefined) return undefined;
    const envelope = decodeEnvelope(data, PLACE);
    const version = number ?? envelope.number ?? 0n;
    return holderOf({ version, record: decodeLease(envelope.record) })?.token;
  };
  /** Whoever looks now may well see nobody. */
  const disturbed = (change: () => void): void => {
    change();
    writes.push({ time: host.scheduler.now, vacant: true });
  };
  const memory = new RecordMemory({
    wipe: () => disturbed(() => disk.wipe(SHELF)),
    backUp: () => {
      const goBack = disk.backUp(SHELF);
      return () => disturbed(goBack);
    },
    // A fresh directory numbers from the clock.
    raise: () => disturbed(() => disk.wipe(SHELF)),
    token,
  });
  return {
    ...ordinary,
    memory,
    forge: (ttlMs) => {
      const number = (newest() ?? 0n) + 1n;
      const record = encodeLease(forged(ttlMs));
      if (number === 1n) return;
      disturbed(() =>
        disk.plant(`${SHELF}/${number}`, encodeEnvelope({ number, id: "forged", record }, PLACE)),
      );
      grants.add(number);
    },
    granted: (number) => powerLost || grants.has(number),
    vouches: () => disk.names(SHELF).length > 0,
    losePower: () => {
      powerLost = true;
      disk.losePower();
    },
    vacancy: () => vacantLately(writes, host.scheduler.now, plan.ttlMs * plan.ttlShare),
    connect: (clock, process, trouble, purpose) => {
      const calls = new DiskCalls(process, host, trouble, plan, purpose);
      return connectFiles(disk.connect(calls), clock, calls, memory.connect(process));
    },
  };
}

function connectFiles(fs: FileSystem, clock: Clock, calls: DiskCalls, account: Account): Connection {
  const backend = fileBackend({ fs, clock, directory: ROOM, deadProcessRule: false });
  const leases = leasesOf(backend);
  if (leases !== undefined)
    Object.assign(
      leases,
      meeting(leases, account, (record) => record),
    );
  // A system call cannot be called back: what is under way may end, but nothing may be written any more.
  return { ...own(backend, calls, account), close: (late) => closeFiles(backend, calls, late) };
}

async function closeFiles(backend: Backend, traffic: Traffic, late: (what: string) => void): Promise<void> {
  await backend[Symbol.asyncDispose]();
  traffic.onCall = (what) => void (what === "link" && late("a record was written"));
}

function isVacated({ holder }: LeaseRecord): boolean {
  return holder === null || holder === EVICTED_HOLDER;
}

/** In the last two ttls, was there a vacant record, or a silence long enough to be taken for one by someone? */
function vacantLately(
  writes: readonly { readonly time: number; readonly vacant: boolean }[],
  now: number,
  ttlMs: number,
): boolean {
  let later = now;
  for (let i = writes.length - 1; i >= 0; i--) {
    const { time, vacant } = writes[i]!;
    if (vacant || later - time > ttlMs / 2) return true;
    if (time < now - 2 * ttlMs) return false;
    later = time;
  }
  return true;
}

/** Of a record with this path. */
function placeOf(path: string): string {
  return path.split("/").slice(-3, -1).join("/");
}
