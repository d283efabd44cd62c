import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { isArtifactTouched } from '../log/artifact-events.js';
import { eventTimes, readEvents, readPage } from '../log/read-events.js';
import { readStatuses } from '../log/read-statuses.js';
import { cancelTask } from './cancel.js';
import { continueTask } from './continue.js';
import { createTask } from './create.js';
import { CreationBatches } from './creation-batches.js';
import { findAlias } from './find-alias.js';
import { firstDetails } from './first-details.js';
import { getTask } from './get.js';
import { readHeads } from './heads.js';
import { tenantsOfTask } from './tenants-of-task.js';
import { listContext } from './list-context.js';
import { findEarlierTurn } from './message-key.js';
import { countSlice, countStates, listTasks, searchTasks } from './task-list.js';
import { TaskReader } from './task-reader.js';
import { listWaitingTasks } from './waiting-tasks.js';
import { wakeAsking } from './wake-asking.js';
import { wakeSignedIn } from './wake-signed-in.js';

/** Unless the caller sets another, in bytes. */
const MAX_READ_BYTES = 16 * 1024 * 1024;

/**
 * The operations on tasks and their logs, as callers see them. Each is a function of a file in this folder or in `log/`, with its
 * statement, its inputs and its rows; here it has its database. Each works inside one tenant (row-level security). What it reads of
 * tasks is bounded, however large they are; what is left out is marked in the task's metadata (`Truncation`).
 */
@Injectable()
export class TaskStore {
  readonly prepare;
  readonly create;
  readonly findAlias;
  readonly continue;
  readonly earlierTurn;
  readonly cancel;
  readonly wakeAsking;
  readonly wakeSignedIn;

  readonly get;
  readonly list;
  readonly search;
  readonly listWaiting;
  readonly countSlice;
  readonly countStates;
  readonly listContext;
  readonly firstDetails;
  readonly heads;
  readonly tenantsOf;

  readonly readEvents;
  readonly readPage;
  readonly eventTimes;
  readonly readStatuses;
  readonly artifactPage;
  readonly isArtifactTouched;

  /** @param readBytes maximum that one call reads of tasks, in bytes of JSON */
  constructor(database: Database, readBytes = MAX_READ_BYTES) {
    const batches = new CreationBatches(database);
    const reader = new TaskReader(database);
    const on = { database, batches, reader, readBytes };
    this.prepare = () => batches.prepare();
    this.create = createTask.bind(undefined, on);
    this.findAlias = findAlias.bind(undefined, database);
    this.continue = continueTask.bind(undefined, database);
    this.earlierTurn = findEarlierTurn.bind(undefined, database);
    this.cancel = cancelTask.bind(undefined, on);
    this.wakeAsking = wakeAsking.bind(undefined, database);
    this.wakeSignedIn = wakeSignedIn.bind(undefined, database);

    this.get = getTask.bind(undefined, on);
    this.list = listTasks.bind(undefined, on);
    this.search = searchTasks.bind(undefined, on);
    this.listWaiting = listWaitingTasks.bind(undefined, on);
    this.countSlice = countSlice.bind(undefined, on);
    this.countStates = countStates.bind(undefined, on);
    this.listContext = listContext.bind(undefined, on);
    this.firstDetails = firstDetails.bind(undefined, database);
    this.heads = readHeads.bind(undefined, database);
    this.tenantsOf = tenantsOfTask.bind(undefined, database);

    this.readEvents = readEvents.bind(undefined, database);
    this.readPage = readPage.bind(undefined, database);
    this.eventTimes = eventTimes.bind(undefined, database);
    this.readStatuses = readStatuses.bind(undefined, database);
    this.artifactPage = reader.artifactPage.bind(reader);
    this.isArtifactTouched = isArtifactTouched.bind(undefined, database);
  }
}
