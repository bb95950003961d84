// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {Certificate, WorkerCertificate} from '../api/api_types';
import {formatCount, formatDuration} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {DataTable} from '../widgets/data_table';
import {button, element, notice, replaceChildren} from '../widgets/dom';
import {Navigation, Page} from '../widgets/navigation';

import {link} from './captures_table';

// What a capture holds and lacks: the verdict, what is against completeness, and the account of each worker.
export class CertificatePage implements Page {
  readonly element = element('div', {class: 'manager'});
  private readonly body = element('main', {class: 'certificate'});

  constructor(private readonly api: ApiClient, private readonly navigation: Navigation, private readonly id: string) {
    this.element.append(
        element(
            'header', {class: 'top-bar'}, link(navigation, '/', '‹ Captures'), element('h1', {}, 'Certificate'),
            element('span', {class: 'id'}, id), element('span', {class: 'grow'}),
            link(navigation, `/capture/${encodeURIComponent(id)}`, 'Timeline')),
        this.body);
    void this.load();
  }

  close(): void {
    // It has no timers.
  }

  private async load(): Promise<void> {
    replaceChildren(this.body, notice('loading', 'Adding up the capture’s accounts'));
    try {
      this.show(await this.api.operator(`/captures/${encodeURIComponent(this.id)}/certificate`) as Certificate);
    } catch (error) {
      const {message, hint} = describeError(error);
      replaceChildren(
          this.body,
          notice(
              'error', `There is no certificate: ${message}`, hint, button('Try again', () => void this.load()),
              button('All captures', () => this.navigation.go('/'))));
    }
  }

  private show(certificate: Certificate): void {
    const {account} = certificate, isComplete = certificate.complete === true;
    const numbers: [string, number][] = [
      ['Expected', parseCount(account?.expected)], ['Captured', parseCount(account?.captured)],
      ['Stored', parseCount(account?.stored)], ['Lost', parseCount(account?.lost)]
    ];
    replaceChildren(
        this.body,
        element(
            'div', {class: `verdict ${isComplete ? 'complete' : 'incomplete'}`},
            element('strong', {}, isComplete ? 'Complete' : 'Incomplete'),
            certificate.provisional === true && element('span', {class: 'badge'}, 'still recording'),
            element('p', {}, certificate.verdict ?? '')),
        element(
            'div', {class: 'numbers'},
            ...numbers.map(
                ([label, value]) => element(
                    'div', {}, element('span', {class: 'faint'}, label), element('strong', {}, formatCount(value))))),
        lines('Against completeness', certificate.findings), lines('Good to know', certificate.notes),
        losses(certificate), this.workers(certificate.workers ?? []), hosts(certificate));
  }

  private workers(workers: WorkerCertificate[]): HTMLElement {
    const enumText = (value: string|undefined, prefix: string): string =>
        (value ?? '').replace(prefix, '').toLowerCase().replace(/_/g, ' ');
    const table =
        new DataTable<WorkerCertificate>(
            [
              {title: 'Instance', value: worker => worker.worker?.instanceId ?? ''},
              {
                title: 'Process',
                numeric: true,
                value: worker => worker.framework ? 0 : worker.worker?.pid ?? 0,
                show: worker => worker.framework ? 'framework files' : String(worker.worker?.pid ?? '')
              },
              {title: 'Ranks', value: worker => (worker.workerGids ?? []).join(', ')},
              {
                title: 'Part',
                value: worker => enumText(worker.part, 'WORKER_PART_'),
                show: worker => element(
                    'span', {
                      class: `state ${
                          worker.part === 'WORKER_PART_RECORDED' || worker.part === 'WORKER_PART_IDLE' ? 'complete'
                                                                                                       : 'incomplete'}`
                    },
                    enumText(worker.part, 'WORKER_PART_'))
              },
              {
                title: 'Stored',
                numeric: true,
                value: worker => parseCount(worker.account?.stored),
                show: worker => formatCount(parseCount(worker.account?.stored))
              },
              {
                title: 'Lost',
                numeric: true,
                value: worker => parseCount(worker.account?.lost),
                show: worker =>
                    formatCount(parseCount(worker.account?.lost)) + (worker.account?.lostUnknown ? ' +?' : '')
              },
              {
                title: 'Gaps',
                numeric: true,
                value: worker => parseCount(worker.gapsSumNs),
                show: worker => parseCount(worker.gaps)
                    ? `${worker.gaps}, ${formatDuration(parseCount(worker.gapsSumNs))}`
                    : '0'
              },
              {title: 'Clock', value: worker => worker.clock?.words ?? ''},
              {title: 'Detail', value: worker => worker.detail ?? '', style: 'wide'},
            ],
            'Workers', 5, true);
    table.show(workers);
    return element('section', {}, element('h2', {}, `Workers (${formatCount(workers.length)})`), table.element);
  }
}

function lines(title: string, texts: string[]|undefined): HTMLElement|null {
  return texts?.length
      ? element(
            'section', {}, element('h2', {}, title), element('ul', {}, ...texts.map(text => element('li', {}, text))))
      : null;
}

function losses(certificate: Certificate): HTMLElement|null {
  const list = certificate.account?.losses ?? [];
  if (!list.length) return null;
  const texts = list.map(
      loss => `${loss.eventsUnknown ? 'an unknown number of' : formatCount(parseCount(loss.events))} events at ${
                  (loss.place ?? '').replace('LOSS_PLACE_', '').toLowerCase().replace(/_/g, ' ')}, ` +
          `${(loss.reason ?? 'unknown').replace('LOSS_REASON_', '').toLowerCase().replace(/_/g, ' ')}${
                  loss.detail ? `: ${loss.detail}` : ''}`);
  return lines('Losses by place and reason', texts);
}

function hosts(certificate: Certificate): HTMLElement|null {
  return lines(
      'Host samples',
      (certificate.hosts ?? [])
          .map(
              host =>
                  `${host.stream?.worker?.instanceId ?? ''}: ${formatCount(parseCount(host.account?.stored))} samples` +
                  (parseCount(host.gaps)
                       ? `, ${host.gaps} stretches without (${formatDuration(parseCount(host.gapsSumNs))})`
                       : '') +
                  (host.cutShort ? ', cut short' : '')));
}
