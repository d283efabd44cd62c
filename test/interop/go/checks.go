package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"time"

	legacy "github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
)

// What is asked of every client.
var checks = []struct {
	name string
	run  func(context.Context, *connection)
}{
	{"card", checkCard},
	{"send", checkSend},
	{"stream", checkStream},
	{"get", checkGet},
	{"list", checkList},
	{"cancel", checkCancel},
	{"subscribe", checkSubscribe},
	{"multi-turn", checkMultiTurn},
	{"files and data", checkFilesAndData},
	{"push", checkPush},
	{"unknown task", checkUnknownTask},
	{"task that cannot be canceled", checkNotCancelable},
	{"bad request", checkBadRequest},
}

// Longer than any check lasts, so that the task is there until it is canceled.
var long = map[string]any{"chunks": 100000, "delayMs": 100}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("expected %v, got %v", expected, actual))
	}
}

func message(echo map[string]any, parts ...*a2a.Part) *a2a.SendMessageRequest {
	message := a2a.NewMessage(a2a.MessageRoleUser, parts...)
	if echo != nil {
		message.SetMeta("echo", echo)
	}
	return &a2a.SendMessageRequest{Message: message}
}

func send(ctx context.Context, client *connection, request *a2a.SendMessageRequest) *a2a.Task {
	result, err := client.SendMessage(ctx, request)
	must(err)
	return result.(*a2a.Task)
}

func partsOf(task *a2a.Task) (parts []*a2a.Part) {
	for _, artifact := range task.Artifacts {
		parts = append(parts, artifact.Parts...)
	}
	return parts
}

func textOf(task *a2a.Task) string {
	texts := []string{}
	for _, part := range partsOf(task) {
		texts = append(texts, part.Text())
	}
	return strings.Join(texts, ",")
}

func roles(task *a2a.Task) (roles []a2a.MessageRole) {
	for _, message := range task.History {
		roles = append(roles, message.Role)
	}
	return roles
}

type stream struct {
	next func() (a2a.Event, error, bool)
	stop func()
}

func open(events iter.Seq2[a2a.Event, error]) stream {
	next, stop := iter.Pull2(events)
	return stream{next, stop}
}

// The next event; nil at the end.
func (s stream) event() a2a.Event {
	event, err, _ := s.next()
	must(err)
	return event
}

func (s stream) last() (last a2a.Event) {
	for event := s.event(); event != nil; event = s.event() {
		last = event
	}
	return last
}

func (s stream) refusal() error {
	defer s.stop()
	_, err, _ := s.next()
	return err
}

func stateOf(event a2a.Event) a2a.TaskState {
	return event.(*a2a.TaskStatusUpdateEvent).Status.State
}

// A stream of a long turn, read until its first chunk.
func begin(ctx context.Context, client *connection) (a2a.TaskID, stream) {
	stream := open(client.SendStreamingMessage(ctx, message(long, a2a.NewTextPart("long"))))
	id := stream.event().(*a2a.Task).ID
	for {
		if _, isChunk := stream.event().(*a2a.TaskArtifactUpdateEvent); isChunk {
			return id, stream
		}
	}
}

func checkCard(ctx context.Context, client *connection) {
	equal(client.card.Name, "Interop")
	equal(client.card.Capabilities.Streaming, true)
	extended, err := client.GetExtendedAgentCard(ctx, &a2a.GetExtendedAgentCardRequest{})
	if err != nil && strings.Contains(err.Error(), "a2a.SecuritySchemeScopes") {
		return // See parseCard, which the SDK does not use here.
	}
	must(err)
	equal(strings.HasSuffix(extended.Description, "tells callers with a token more"), true)
}

func checkSend(ctx context.Context, client *connection) {
	task := send(ctx, client, message(nil, a2a.NewTextPart("hello")))
	equal(task.Status.State, a2a.TaskStateCompleted)
	equal(textOf(task), "hello")
}

func checkStream(ctx context.Context, client *connection) {
	kinds := []string{}
	var last a2a.Event
	for event, err := range client.SendStreamingMessage(ctx, message(map[string]any{"chunks": 3}, a2a.NewTextPart("hi"))) {
		must(err)
		kinds = append(kinds, fmt.Sprintf("%T", event))
		last = event
	}
	chunk, status := "*a2a.TaskArtifactUpdateEvent", "*a2a.TaskStatusUpdateEvent"
	equal(kinds, []string{"*a2a.Task", status, chunk, chunk, chunk, status})
	equal(stateOf(last), a2a.TaskStateCompleted)
}

func checkGet(ctx context.Context, client *connection) {
	sent := send(ctx, client, message(nil, a2a.NewTextPart("get me")))
	task, err := client.GetTask(ctx, &a2a.GetTaskRequest{ID: sent.ID})
	must(err)
	equal(task.ID, sent.ID)
	equal(textOf(task), "get me")
	equal(roles(task), []a2a.MessageRole{a2a.MessageRoleUser})
}

func checkList(ctx context.Context, client *connection) {
	contextID := a2a.NewContextID()
	for _, text := range []string{"a", "b", "c"} {
		request := message(nil, a2a.NewTextPart(text))
		request.Message.ContextID = contextID
		send(ctx, client, request)
	}
	query := &a2a.ListTasksRequest{ContextID: contextID, PageSize: 2, IncludeArtifacts: true}
	first, err := client.ListTasks(ctx, query)
	must(err)
	query.PageToken = first.NextPageToken
	second, err := client.ListTasks(ctx, query)
	must(err)
	texts := []string{}
	for _, task := range append(first.Tasks, second.Tasks...) {
		texts = append(texts, textOf(task))
	}
	equal(texts, []string{"c", "b", "a"})
	equal(second.NextPageToken, "")
}

func checkCancel(ctx context.Context, client *connection) {
	id, stream := begin(ctx, client)
	defer stream.stop()
	task, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id})
	must(err)
	equal(task.Status.State, a2a.TaskStateCanceled)
	equal(stateOf(stream.last()), a2a.TaskStateCanceled)
}

func checkSubscribe(ctx context.Context, client *connection) {
	id, stream := begin(ctx, client)
	defer stream.stop()
	other := open(client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: id}))
	defer other.stop()
	equal(other.event().(*a2a.Task).ID, id)
	equal(fmt.Sprintf("%T", other.event()), "*a2a.TaskArtifactUpdateEvent")
	_, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id})
	must(err)
	equal(stateOf(other.last()), a2a.TaskStateCanceled)
}

func checkMultiTurn(ctx context.Context, client *connection) {
	asked := send(ctx, client, message(map[string]any{"askInput": true}, a2a.NewTextPart("first")))
	equal(asked.Status.State, a2a.TaskStateInputRequired)
	answer := a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("second"))
	answered := send(ctx, client, &a2a.SendMessageRequest{Message: answer})
	equal(answered.ID, asked.ID)
	equal(answered.Status.State, a2a.TaskStateCompleted)
	equal(textOf(answered), "second")
	equal(roles(answered), []a2a.MessageRole{a2a.MessageRoleUser, a2a.MessageRoleAgent, a2a.MessageRoleUser})
}

func checkFilesAndData(ctx context.Context, client *connection) {
	file := a2a.NewRawPart([]byte{0, 1, 2, 255})
	file.MediaType, file.Filename = "application/octet-stream", "four.bin"
	link := a2a.NewFileURLPart("https://example.com/report.pdf", "application/pdf")
	link.Filename = "report.pdf"
	data := a2a.NewDataPart(map[string]any{"n": 1.5, "list": []any{"ä", true, nil}, "nested": map[string]any{}})
	parts := []*a2a.Part{file, link, data, a2a.NewTextPart("and text")}
	task := send(ctx, client, message(nil, parts...))
	equal(jsonOf(partsOf(task)), jsonOf(parts))
	got, err := client.GetTask(ctx, &a2a.GetTaskRequest{ID: task.ID})
	must(err)
	equal(jsonOf(partsOf(got)), jsonOf(parts))
}

func jsonOf(parts []*a2a.Part) string {
	text, err := json.Marshal(a2a.ContentParts(parts))
	must(err)
	return string(text)
}

type delivery struct {
	header http.Header
	body   []byte
}

func checkPush(ctx context.Context, client *connection) {
	received := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		received <- delivery{request.Header, body}
	}))
	defer receiver.Close()
	asked := send(ctx, client, message(map[string]any{"askInput": true}, a2a.NewTextPart("first")))
	config := &a2a.PushConfig{TaskID: asked.ID, ID: "mine", URL: receiver.URL + "/", Token: "a-token"}
	set, err := client.CreateTaskPushConfig(ctx, config)
	must(err)
	equal([]string{set.ID, set.URL}, []string{config.ID, config.URL})
	got, err := client.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: asked.ID, ID: config.ID})
	must(err)
	equal(got, set)
	configs, err := client.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: asked.ID})
	must(err)
	equal(configs, []*a2a.PushConfig{set})
	answer := a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("second"))
	send(ctx, client, &a2a.SendMessageRequest{Message: answer})
	states := []a2a.TaskState{}
	for !slices.Contains(states, a2a.TaskStateCompleted) {
		select {
		case delivery := <-received:
			header := delivery.header
			equal(header.Get("A2A-Version")+" "+header.Get("X-A2A-Notification-Token"), client.kind.version+" a-token")
			if state := pushedState(client, delivery.body); state != "" && !slices.Contains(states, state) {
				states = append(states, state)
			}
		case <-time.After(time.Minute):
			panic(fmt.Sprintf("nothing came after %v", states))
		}
	}
	equal(states, []a2a.TaskState{a2a.TaskStateSubmitted, a2a.TaskStateWorking, a2a.TaskStateCompleted})
	must(client.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: asked.ID, ID: config.ID}))
	configs, err = client.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: asked.ID})
	must(err)
	equal(len(configs), 0)
}

// The state that a push notification tells, if any. That of 0.3 is a task.
func pushedState(client *connection, body []byte) a2a.TaskState {
	if client.kind.version == "0.3" {
		var task legacy.Task
		must(json.Unmarshal(body, &task))
		return a2av0.ToV1TaskState(task.Status.State)
	}
	var response a2a.StreamResponse
	must(json.Unmarshal(body, &response))
	switch event := response.Event.(type) {
	case *a2a.TaskStatusUpdateEvent:
		return event.Status.State
	case *a2a.Task:
		return event.Status.State
	}
	return ""
}

// The SDK has an error value for each reason.
func refused(err error, reason error) {
	if !errors.Is(err, reason) {
		panic(fmt.Sprintf("expected the error %q, got %T: %v", reason, err, err))
	}
}

func checkUnknownTask(ctx context.Context, client *connection) {
	_, err := client.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.NewTaskID()})
	refused(err, a2a.ErrTaskNotFound)
	if client.kind.losesErrorsOfStreams() {
		return
	}
	events := client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: a2a.NewTaskID()})
	refused(open(events).refusal(), a2a.ErrTaskNotFound)
}

func checkNotCancelable(ctx context.Context, client *connection) {
	task := send(ctx, client, message(nil, a2a.NewTextPart("done")))
	_, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task.ID})
	refused(err, a2a.ErrTaskNotCancelable)
}

func checkBadRequest(ctx context.Context, client *connection) {
	_, err := client.SendMessage(ctx, message(nil))
	refused(err, a2a.ErrInvalidParams)
	if client.kind.losesErrorsOfStreams() {
		return
	}
	refused(open(client.SendStreamingMessage(ctx, message(nil))).refusal(), a2a.ErrInvalidParams)
}
