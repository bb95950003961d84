// SPDX-License-Identifier: Apache-2.0
import {AgentEntry, ClockEntry, StandingExport, TriggerEntry, WorkerEntry} from '../api/api_types';
import {formatCount, formatDuration, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';
import {Column, DataTable} from '../widgets/data_table';
import {element} from '../widgets/dom';

// One tab of the manager beside the captures: a reply of the operator service as a table.
export interface FleetTable {
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly emptyTitle: string;
  readonly emptyHint: string;
  readonly element: HTMLElement;
  // Returns how many rows the reply has.
  show(reply: Record<string, unknown>): number;
}

class ListTable<Row> implements FleetTable {
  readonly element: HTMLElement;
  private readonly table: DataTable<Row>;

  constructor(
      readonly name: string, readonly title: string, readonly path: string, private readonly member: string,
      readonly emptyTitle: string, readonly emptyHint: string, columns: Column<Row>[]) {
    this.table = new DataTable(columns, title, 0, false, null, 1000);
    this.element = this.table.element;
  }

  show(reply: Record<string, unknown>): number {
    const rows = (Array.isArray(reply[this.member]) ? reply[this.member] : []) as Row[];
    this.table.show(rows);
    return rows.length;
  }
}

function text<Row>(title: string, value: (row: Row) => string | undefined, style?: string): Column<Row> {
  return {title, value: row => value(row) ?? '', style};
}

function count<Row>(title: string, value: (row: Row) => string | number | undefined): Column<Row> {
  return {
    title,
    numeric: true,
    value: row => parseCount(value(row) ?? 0),
    show: row => formatCount(parseCount(value(row) ?? 0))
  };
}

function length<Row>(title: string, value: (row: Row) => string | undefined): Column<Row> {
  return {
    title,
    numeric: true,
    value: row => parseCount(value(row)),
    show: row => value(row) ? formatDuration(parseCount(value(row))) : ''
  };
}

function time<Row>(title: string, value: (row: Row) => string | undefined): Column<Row> {
  return {title, value: row => value(row) ?? '', show: row => formatUtc(parseInteger(value(row))), style: 'nowrap'};
}

// "WORKER_STATE_NO_TAP" as "no tap".
function enumText(value: string|undefined, prefix: string): string {
  return (value ?? '').replace(prefix, '').toLowerCase().replace(/_/g, ' ');
}

// A worker that nothing records runs all the same: "idle" is about its tap.
function workerState(state: string|undefined): string {
  return state === 'WORKER_STATE_IDLE' ? 'ready' : enumText(state, 'WORKER_STATE_');
}

function badge(value: string, isGood: boolean): HTMLElement {
  return element('span', {class: `state ${isGood ? 'complete' : 'incomplete'}`}, value);
}

export function fleetTables(): FleetTable[] {
  return [agents(), workers(), clocks(), triggers(), standingExports()];
}

function agents(): FleetTable {
  return new ListTable<AgentEntry>(
      'agents', 'Agents', '/agents', 'agents', 'No agent has ever connected',
      'Start neurontrace-agent on each instance with the address of this aggregator. ' +
          'If one does not connect, run neurontrace doctor there.',
      [
        text('Instance', agent => agent.hello?.instanceId),
        text('Host', agent => agent.hello?.hostName),
        text('Type', agent => agent.hello?.instanceType),
        {
          title: 'State',
          value: agent => agent.connected ? 'connected' : 'away',
          show: agent => badge(agent.connected ? 'connected' : 'away', agent.connected === true)
        },
        time('Last seen (UTC)', agent => agent.lastSeenRealtimeNs),
        count('Workers', agent => agent.workers),
        text('Version', agent => agent.hello?.agentVersion),
        text('Agent', agent => agent.hello?.agentId, 'id'),
      ]);
}

function workers(): FleetTable {
  return new ListTable<WorkerEntry>(
      'workers', 'Workers', '/workers', 'workers', 'No worker is known',
      'A worker appears when its process has loaded the tap and called nrt_init.', [
        text('Instance', worker => worker.identity?.instanceId),
        count('Process', worker => worker.identity?.pid),
        text('Job', worker => worker.job),
        {title: 'Ranks', value: worker => ranksOf(worker), style: 'nowrap'},
        {
          title: 'State',
          value: worker => workerState(worker.state),
          show: worker => badge(
              workerState(worker.state), ['WORKER_STATE_IDLE', 'WORKER_STATE_STREAMING'].includes(worker.state ?? ''))
        },
        count('Cores', worker => worker.cores?.length),
        text('Runtime', worker => worker.runtimeVersion),
        text('Command', worker => worker.command, 'wide code'),
        text('Detail', worker => worker.detail, 'wide'),
      ]);
}

function ranksOf(worker: WorkerEntry): string {
  const ranks = (worker.cores ?? [])
                    .map(core => core.rankEvidence?.[0])
                    .filter(evidence => evidence !== undefined)
                    .map(evidence => (evidence!.workerGid ?? '0') + (evidence!.guessed ? '?' : ''));
  return ranks.length > 4 ? `${ranks[0]} … ${ranks[ranks.length - 1]} (${ranks.length})` : ranks.join(', ');
}

function clocks(): FleetTable {
  return new ListTable<ClockEntry>(
      'clocks', 'Clocks', '/clocks', 'clocks', 'No clock is known',
      'Clocks are measured as soon as an agent is connected.', [
        text('Instance', clock => clock.instanceId),
        {
          title: 'State',
          value: clock => clock.aligned ? 'aligned' : 'not aligned',
          show: clock => badge(clock.aligned ? 'aligned' : 'not aligned', clock.aligned === true)
        },
        length('Bound', clock => clock.boundNs),
        length('Likely bound', clock => clock.likelyBoundNs),
        length('Offset', clock => clock.offsetNs),
        {
          title: 'Drift',
          numeric: true,
          value: clock => parseCount(clock.driftPpb),
          show: clock => `${parseCount(clock.driftPpb)} ppb`
        },
        count('Exchanges', clock => clock.exchanges),
        {title: 'Sources', value: clock => (clock.sources ?? []).join(', ')},
        {
          title: 'Findings',
          value: clock => (clock.findings ?? []).map(finding => finding.words ?? '').join('; '),
          style: 'wide'
        },
      ]);
}

function triggers(): FleetTable {
  return new ListTable<TriggerEntry>(
      'triggers', 'Triggers', '/triggers', 'triggers', 'There are no triggers',
      'Rules in the aggregator’s file of triggers start captures by themselves.', [
        text('Name', trigger => trigger.rule?.name),
        {title: 'Kind', value: trigger => enumText(trigger.rule?.kind, 'TRIGGER_KIND_')},
        text('Job', trigger => trigger.rule?.job),
        length('Cool-down', trigger => trigger.rule?.coolDownNs),
        count('Fired', trigger => trigger.fired),
        count('Suppressed', trigger => trigger.suppressed),
        time('Last fired (UTC)', trigger => trigger.lastFiredRealtimeNs),
        text('Cause', trigger => trigger.lastCause, 'wide'),
        text('Problem', trigger => trigger.lastProblem, 'wide'),
      ]);
}

function standingExports(): FleetTable {
  return new ListTable<StandingExport>(
      'exports', 'Standing exports', '/standing-exports', 'exports', 'No capture is exported by itself',
      'Rules of the aggregator’s option --standing-export write captures to a volume or bucket when they end.', [
        text('Name', rule => rule.name),
        text('Writes to', rule => rule.to, 'wide'),
        {title: 'Formats', value: rule => (rule.formats ?? []).join(', ')},
        {
          title: 'Captures',
          value: rule => [rule.capture ? `named ${rule.capture}` : 'all', rule.job ? `of job ${rule.job}` : '',
                          rule.incomplete ? '' : 'if complete']
                             .filter(part => part)
                             .join(' ')
        },
        count('Pending', rule => rule.pending),
        count('Done', rule => rule.done),
        count('Failed', rule => rule.failed),
        text('Running', rule => rule.runningCapture, 'id'),
        time('Last (UTC)', rule => rule.lastRealtimeNs),
        {
          title: 'Result',
          style: 'wide',
          value: rule => rule.lastProblem || rule.lastWrittenTo || '',
          show: rule => element(
              'span', {class: rule.lastProblem ? 'bad' : undefined}, rule.lastProblem || rule.lastWrittenTo || '')
        },
      ]);
}
