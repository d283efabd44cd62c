import { Button, Grid, Stack } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { isTerminal } from '../../a2a/task-states';
import { Page } from '../../components/page';
import { useCaller } from '../../session/caller';
import type { AgentCall } from './agent-call';
import { AnswerSummary } from './answer-summary';
import { AnswerView } from './answer-view';
import { EarlierTurns, CallerMessage, type ConversationTurn } from './conversation';
import { type Draft, draftFor, faultsOf, writeDraft } from './draft';
import { NO_ANSWER, type ReceivedAnswer } from './received-answer';
import { RequestForm } from './request-form';
import { WireView } from './wire-view';

const route = getRouteApi('/app/playground');
/** Maximum number of frames that the page keeps and shows. */
const MAX_FRAMES = 500;

/** The first pause before a lost stream is resumed. It doubles with each try. */
const FIRST_PAUSE_MS = 500;
/** Maximum pause between two tries. A person is waiting. */
const MAX_PAUSE_MS = 10_000;

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** A message of the caller, and its outcome so far. */
interface PlaygroundTurn extends ConversationTurn {
  id: string;
  agent: string;
  answer: ReceivedAnswer;
}

/** Calls agents as any client does, and shows each frame on the wire. */
export function PlaygroundPage() {
  const { agent } = route.useSearch();
  const { tenant } = useCaller();
  const [draft, setDraft] = useState<Draft>(() => draftFor(tenant, agent));
  /** The conversation. The answer of its last turn may still come in. */
  const [turns, setTurns] = useState<readonly PlaygroundTurn[]>([]);
  const last = turns.at(-1);
  const answer = last?.answer ?? NO_ANSWER;
  const call = useRef<AgentCall>(undefined);
  const faults = faultsOf(draft);
  const isValid = Object.keys(faults).length === 0;
  const isBusy = answer.state === 'running' || answer.state === 'lost';

  useEffect(() => writeDraft(tenant, draft), [tenant, draft]);
  // Ends the connection when the user leaves the page. The task continues.
  useEffect(() => () => call.current?.cut(), []);

  const changeAnswer = (id: string, change: (answer: ReceivedAnswer) => Partial<ReceivedAnswer>): void =>
    setTurns((now) =>
      now.map((turn) =>
        turn.id === id ? { ...turn, answer: { ...turn.answer, ...change(turn.answer) } } : turn,
      ),
    );
  const follow = async (id: string, following: AgentCall, work: () => Promise<void>): Promise<void> => {
    const show = (change: Partial<ReceivedAnswer>): void => {
      if (call.current === following) changeAnswer(id, () => change);
    };
    show({ state: 'running', error: undefined });
    let pause = FIRST_PAUSE_MS;
    for (let next = work; ; next = () => following.resume()) {
      try {
        await next();
        if (!(await following.wasCut())) return show({ state: 'done', error: undefined });
      } catch (error) {
        if (isAbort(error)) return show({ state: 'cut' });
        if (!(await following.wasCut())) return show({ state: 'failed', error });
      }
      show({ state: 'lost' });
      try {
        await following.pause(pause);
      } catch {
        return show({ state: 'cut' });
      }
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
    }
  };
  const startAnew = (): void => {
    setTurns([]);
    setDraft((now) => ({ ...now, contextId: '', taskId: '' }));
  };
  const send = async (): Promise<void> => {
    const { agent: of, text } = draft;
    const { contextId: context = '' } = answer.summary;
    // The next message continues in the conversation, unless it names another one.
    const contextId = draft.contextId || (last?.agent === of ? context : '');
    const continues = contextId !== '' && contextId === context;
    const id = crypto.randomUUID();
    const turn: PlaygroundTurn = { id, agent: of, said: text, answer: { ...NO_ANSWER, state: 'running' } };
    setTurns(continues ? [...turns, turn] : [turn]);
    // The SDK is loaded when it is first used.
    const { AgentCall } = await import('./agent-call');
    const summary = new AnswerSummary();
    const sent = new AgentCall(
      { ...draft, contextId },
      {
        onExchange: (exchange) => changeAnswer(id, () => ({ exchange })),
        onFrame: (frame) =>
          changeAnswer(id, ({ state, frames, count }) => ({
            state: state === 'lost' ? 'running' : state,
            frames: [...frames, frame].slice(-MAX_FRAMES),
            count: count + 1,
          })),
        onEvent: (event) => {
          summary.add(event);
          changeAnswer(id, ({ events }) => ({
            events: [...events, event].slice(-MAX_FRAMES),
            summary: summary.summary,
          }));
        },
      },
    );
    call.current = sent;
    await follow(id, sent, () => sent.send());
    const { taskId, taskState } = summary.summary;
    // A task that has ended takes no other message.
    if (isTerminal(taskState)) setDraft((now) => (now.taskId === taskId ? { ...now, taskId: '' } : now));
  };
  const resume = (): void => {
    const { current } = call;
    if (current && last) void follow(last.id, current, () => current.resume());
  };
  const cancel = (): void => {
    void call.current
      ?.cancelTask()
      .catch((error: unknown) => last && changeAnswer(last.id, () => ({ error })));
  };

  return (
    <Page title="Playground">
      <Grid gap="xl">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Stack>
            {turns.length > 1 && <EarlierTurns turns={turns.slice(0, -1)} />}
            {last && <CallerMessage text={last.said} />}
            <AnswerView
              answer={answer}
              onContinue={(contextId, taskId) => setDraft((now) => ({ ...now, contextId, taskId }))}
            />
            <RequestForm
              draft={draft}
              faults={faults}
              onChange={setDraft}
              onSend={() => isValid && !isBusy && void send()}
            >
              <Button onClick={() => void send()} disabled={!isValid || isBusy}>
                Send
              </Button>
              {last && (
                <Button variant="default" onClick={startAnew} disabled={isBusy}>
                  New conversation
                </Button>
              )}
              {draft.isStream && isBusy && (
                <Button variant="default" onClick={() => call.current?.cut()}>
                  Cut the connection
                </Button>
              )}
              {answer.state === 'cut' && call.current?.canResume === true && (
                <Button variant="default" onClick={resume}>
                  Resume
                </Button>
              )}
              {(isBusy || answer.state === 'cut') && (
                <Button variant="default" onClick={cancel}>
                  Cancel the task
                </Button>
              )}
            </RequestForm>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <WireView answer={answer} />
        </Grid.Col>
      </Grid>
    </Page>
  );
}
