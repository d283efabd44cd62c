import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { keepArtifacts } from '../tasks/keep-artifacts.js';
import { agentVersions, begunWith, noteAgentVersion, VERSIONS } from './agent-version.js';
import { appendEntry, ENTRIES } from './append-entry.js';
import { appendEvents, APPENDS } from './append.js';
import { claimRun, CLAIMS } from './claim.js';
import { countActive } from './count-active.js';
import { lastError } from './read-last-error.js';
import { giveUpRun } from './give-up.js';
import { noteError } from './note-error.js';
import { failPoisonedRuns } from './fail-poisoned.js';
import { eagerRunFrom } from './eager-run.js';
import { EAGER_READS, readEagerRun } from './read-eager-run.js';
import { openByVersion } from './open-by-version.js';
import { parkRun, resumeRun, wakeParked } from './park.js';
import { isSuspect, postponeRun } from './quarantine.js';
import { returnToQueue } from './return-to-queue.js';
import { RunBatches } from './run-batches.js';
import { runHistories } from '../dispatch/run-history.js';
import { runsOfTask } from './runs-of-task.js';
import { findWork } from './find-work.js';
import { endOrphanedLeases } from './leases/end-orphaned-leases.js';
import { reclaimExpired } from './leases/reclaim-expired.js';
import { endStrayRuns } from './end-stray-runs.js';
import { takeStaleQueued } from './take-stale-queued.js';

/** Unless the caller sets another, in bytes. */
const MAX_READ_BYTES = 4 * 1024 * 1024;
/** Claims are first: an older attempt of the same run is refused then. */
const IN_ORDER = [CLAIMS, EAGER_READS, APPENDS, ENTRIES, VERSIONS];

/**
 * The operations on runs, in the order of a run's life. Each is a function of a file in this folder, with its statement, its inputs
 * and its rows; here it has its database. `LeaseKeeper` extends the leases between claim and end.
 */
@Injectable()
export class RunStore {
  readonly prepare;
  readonly claim;
  readonly readEagerRun;
  readonly eagerRunFrom;
  readonly noteAgentVersion;
  readonly begunWith;
  readonly append;
  readonly appendEntry;
  readonly returnToQueue;
  readonly park;
  readonly resume;

  readonly noteError;
  readonly giveUp;
  readonly lastError;
  readonly ofTask;
  readonly agentVersions;
  readonly openByVersion;
  readonly histories;

  readonly findWork;
  readonly endOrphanedLeases;
  readonly reclaimExpired;
  readonly isSuspect;
  readonly postpone;
  readonly failPoisoned;
  readonly keepArtifacts;
  readonly takeStaleQueued;
  readonly endStrayRuns;
  readonly wakeParked;
  readonly countActive;

  /** @param readBytes maximum that is read of a task for one run, in bytes of JSON */
  constructor(database: Database, readBytes = MAX_READ_BYTES) {
    const batches = new RunBatches(database, IN_ORDER);
    const on = { database, batches, readBytes };
    this.prepare = () => batches.prepare();
    this.claim = claimRun.bind(undefined, on);
    this.readEagerRun = readEagerRun.bind(undefined, on);
    this.eagerRunFrom = eagerRunFrom.bind(undefined, on);
    this.begunWith = begunWith.bind(undefined, database);
    this.noteAgentVersion = noteAgentVersion.bind(undefined, on);
    this.append = appendEvents.bind(undefined, on);
    this.appendEntry = appendEntry.bind(undefined, on);
    this.returnToQueue = returnToQueue.bind(undefined, database);
    this.park = parkRun.bind(undefined, database);
    this.resume = resumeRun.bind(undefined, database);

    this.noteError = noteError.bind(undefined, database);
    this.giveUp = giveUpRun.bind(undefined, database);
    this.lastError = lastError.bind(undefined, database);
    this.openByVersion = openByVersion.bind(undefined, database);
    this.agentVersions = agentVersions.bind(undefined, database);
    this.ofTask = runsOfTask.bind(undefined, database);
    this.histories = runHistories.bind(undefined, database);

    this.findWork = findWork.bind(undefined, database);
    this.endOrphanedLeases = endOrphanedLeases.bind(undefined, database);
    this.reclaimExpired = reclaimExpired.bind(undefined, database);
    this.isSuspect = isSuspect.bind(undefined, database);
    this.postpone = postponeRun.bind(undefined, database);
    this.failPoisoned = failPoisonedRuns.bind(undefined, database);
    this.keepArtifacts = keepArtifacts.bind(undefined, database);
    this.takeStaleQueued = takeStaleQueued.bind(undefined, database);
    this.endStrayRuns = endStrayRuns.bind(undefined, database);
    this.wakeParked = wakeParked.bind(undefined, database);
    this.countActive = countActive.bind(undefined, database);
  }
}
