// SPDX-License-Identifier: Apache-2.0
import {certificateSentences, enumText, kNamedMax, lossText} from '../model/certificate_sentences';
import {Certificate, WorkerCertificate} from '../model/certificate_types';
import {formatCount, formatDuration} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {DataTable} from '../widgets/data_table';
import {element} from '../widgets/dom';

// What a capture holds and lacks: the verdict, the same in sentences, and the account of each worker as a table.
export function certificateSection(certificate: Certificate): HTMLElement {
  const {account} = certificate, losses = account?.losses ?? [], isComplete = certificate.complete === true;
  const numbers: [string, number][] = [
    ['Expected', parseCount(account?.expected)], ['Captured', parseCount(account?.captured)],
    ['Stored', parseCount(account?.stored)], ['Lost', parseCount(account?.lost)]
  ];
  return element(
      'section', {class: 'certificate', 'aria-labelledby': 'certificate-title'},
      element('h2', {id: 'certificate-title'}, 'Certificate'),
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
      element('ul', {class: 'sentences'}, ...certificateSentences(certificate).map(text => element('li', {}, text))),
      lines('Against completeness', certificate.findings), lines('Good to know', certificate.notes),
      losses.length > kNamedMax && lines('Losses by place and reason', losses.map(lossText)),
      workerTable(certificate.workers ?? []));
}

function workerTable(workers: WorkerCertificate[]): HTMLElement {
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
              show: worker => formatCount(parseCount(worker.account?.lost)) + (worker.account?.lostUnknown ? ' +?' : '')
            },
            {
              title: 'Gaps',
              numeric: true,
              value: worker => parseCount(worker.gapsSumNs),
              show: worker =>
                  parseCount(worker.gaps) ? `${worker.gaps}, ${formatDuration(parseCount(worker.gapsSumNs))}` : '0'
            },
            {title: 'Clock', value: worker => worker.clock?.words ?? ''},
            {title: 'Detail', value: worker => worker.detail ?? '', style: 'wide'},
          ],
          'Workers', 5, true);
  table.show(workers);
  return element('div', {}, element('h3', {}, `Workers (${formatCount(workers.length)})`), table.element);
}

function lines(title: string, texts: string[]|undefined): HTMLElement|null {
  return texts?.length
      ? element('div', {}, element('h3', {}, title), element('ul', {}, ...texts.map(text => element('li', {}, text))))
      : null;
}
