// SPDX-License-Identifier: Apache-2.0
import {Certificate, Loss, WorkerCertificate} from './certificate_types';
import {formatCount, formatDuration} from './text_format';
import {parseCount} from './time_base';

// Workers and losses that are named one by one; further ones are counted.
export const kNamedMax = 5;

// What a capture holds and lacks, in plain sentences. `enum` prefixes of proto3 JSON are removed by enumText.
export function certificateSentences(certificate: Certificate): string[] {
  const workers = certificate.workers ?? [];
  return [
    eventSentence(certificate, workers), ...lossSentences(certificate), ...absenceSentences(workers),
    ...clockSentences(workers), ...gapSentences(workers), ...hostSentences(certificate), ...jobSentences(certificate)
  ];
}

// "WORKER_PART_DATA_LOST" as "data lost".
export function enumText(value: string|undefined, prefix: string): string {
  return (value ?? '').replace(prefix, '').toLowerCase().replace(/_/g, ' ');
}

export function workerName(worker: WorkerCertificate): string {
  const id = worker.worker?.instanceId ?? 'an unknown instance';
  return worker.framework ? `the framework files of ${id}` : `${id} pid ${worker.worker?.pid ?? 0}`;
}

export function lossText(loss: Loss): string {
  const events = loss.eventsUnknown ? 'an unknown number of events' : count(parseCount(loss.events), 'event');
  return `${events} at ${enumText(loss.place, 'LOSS_PLACE_') || 'an unknown place'}, ` +
      (enumText(loss.reason, 'LOSS_REASON_') || 'unknown reason') + (loss.detail ? `: ${loss.detail}` : '');
}

function count(number: number, what: string): string {
  return `${formatCount(number)} ${what}${number === 1 ? '' : 's'}`;
}

function eventSentence(certificate: Certificate, workers: WorkerCertificate[]): string {
  const {account} = certificate, stored = parseCount(account?.stored), expected = parseCount(account?.expected);
  const ranks = new Set(workers.flatMap(worker => worker.workerGids ?? [])).size;
  const source = `${count(workers.length, 'worker')}${ranks ? ` with ${count(ranks, 'rank')}` : ''}`;
  if (certificate.provisional)
    return `The capture is not over: so far ${count(stored, 'event')} of ${source} are stored.`;
  if (certificate.complete)
    return `Every event that the runtime produced is stored: ${count(stored, 'event')} of ${source}.`;
  const lost = `${formatCount(parseCount(account?.lost))}${account?.lostUnknown ? ' and an unknown number more' : ''}`;
  return `Of ${count(expected, 'expected event')} of ${source}, ${formatCount(stored)} are stored and ${
      lost} are lost.`;
}

function named<T>(list: T[], text: (entry: T) => string): string {
  const rest = list.length - kNamedMax;
  return list.slice(0, kNamedMax).map(text).join('; ') + (rest > 0 ? `; and ${formatCount(rest)} more` : '');
}

function lossSentences(certificate: Certificate): string[] {
  const losses = certificate.account?.losses ?? [];
  return losses.length ? [`Lost: ${named(losses, lossText)}.`] : [];
}

function absenceSentences(workers: WorkerCertificate[]): string[] {
  const absent = workers.filter(worker => !['WORKER_PART_RECORDED', 'WORKER_PART_IDLE'].includes(worker.part ?? ''));
  if (!absent.length) return workers.length ? ['Every worker took part.'] : ['No worker took part.'];
  const text = (worker: WorkerCertificate): string => [workerName(worker), enumText(worker.part, 'WORKER_PART_'),
                                                       worker.absence && worker.absence !== 'WORKER_ABSENCE_NONE'
                                                           ? enumText(worker.absence, 'WORKER_ABSENCE_')
                                                           : '',
                                                       worker.detail ?? '']
                                                          .filter(part => part)
                                                          .join(', ');
  return [`${formatCount(absent.length)} of ${count(workers.length, 'worker')} did not record to the end: ${
      named(absent, text)}.`];
}

function clockSentences(workers: WorkerCertificate[]): string[] {
  const clocks = workers.filter(worker => !worker.framework), aligned = clocks.filter(worker => worker.clock?.aligned);
  if (!clocks.length) return [];
  if (aligned.length < clocks.length)
    return [`The clocks of ${formatCount(clocks.length - aligned.length)} of ${
        count(
            clocks.length,
            'worker')} are not aligned: compare their times with those of other instances only roughly.`];
  const bound = aligned.reduce((most, worker) => Math.max(most, parseCount(worker.clock?.boundNs)), 0);
  return [`All clocks are aligned; no time is more than ${formatDuration(bound)} off.`];
}

function gapSentences(workers: WorkerCertificate[]): string[] {
  const gaps = workers.filter(worker => parseCount(worker.gaps) > 0);
  if (!gaps.length) return [];
  const longest = gaps.reduce((most, worker) => Math.max(most, parseCount(worker.gapsSumNs)), 0);
  return [`${count(gaps.length, 'worker')} ${gaps.length === 1 ? 'has' : 'have'} gaps, of together at most ${
      formatDuration(longest)} on a core; the timeline draws them as hatching.`];
}

function hostSentences(certificate: Certificate): string[] {
  const hosts = certificate.hosts ?? [];
  if (!hosts.length) return [];
  const samples = hosts.reduce((sum, host) => sum + parseCount(host.account?.stored), 0);
  const cut = hosts.filter(host => host.cutShort).length;
  return [`Processors and memory of ${count(hosts.length, 'host')} were sampled ${count(samples, 'time')}${
      cut ? `; the samples of ${formatCount(cut)} end too early` : ''}.`];
}

function jobSentences(certificate: Certificate): string[] {
  return (certificate.jobs ?? []).map(job => {
    const world = parseCount(job.worldSize), seen = parseCount(job.ranksSeen);
    const ranks =
        world ? `${formatCount(seen)} of ${count(world, 'rank')} were seen` : `${count(seen, 'rank')} were seen`;
    const conflicts = job.conflicts?.length ? `; contradictions: ${named(job.conflicts, text => text)}` : '';
    return `Job ${job.job || 'without a name'}: ${ranks}${conflicts}.`;
  });
}
