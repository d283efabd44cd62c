// Calls the agent echo with the Go SDK of MCP, as a client of 2026-07-28 and of 2025-11-25. Prints a line for each check. Run it
// with ./run URL TOKEN.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type object = map[string]any

var (
	asks = object{"askInput": true}
	slow = object{"delayMs": 600_000}
	file = []byte{0, 255}
)

// Sends the token with every request.
type authorized struct{ token string }

func (a authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultTransport.RoundTrip(request)
}

// One connection, of one revision.
type caller struct {
	*mcp.ClientSession
	progress chan float64
}

func connect(ctx context.Context, revision, token string) (*caller, error) {
	progress := make(chan float64, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if !strings.Contains(request.Params.Message, "What shall I echo?") {
				return nil, fmt.Errorf("asked for %q", request.Params.Message)
			}
			return &mcp.ElicitResult{Action: "accept", Content: object{"answer": "from a person"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			progress <- request.Params.Progress
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint:   os.Args[1],
		HTTPClient: &http.Client{Transport: authorized{token}},
	}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, err
	}
	return &caller{session, progress}, nil
}

// Calls the agent with what it does with the message.
func (c *caller) echo(ctx context.Context, arguments, options object) (*mcp.CallToolResult, error) {
	meta := mcp.Meta{"baton/metadata": object{"echo": options}}
	return c.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: "echo", Arguments: arguments})
}

func (c *caller) tool(ctx context.Context, name, taskId string) (*mcp.CallToolResult, error) {
	return c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: object{"taskId": taskId}})
}

func textOf(result *mcp.CallToolResult) string {
	text := ""
	for _, block := range result.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	return text
}

func said(result *mcp.CallToolResult, err error, text string) error {
	if err != nil {
		return err
	}
	if result.IsError || textOf(result) != text {
		return fmt.Errorf("not %q: %q, error: %t", text, textOf(result), result.IsError)
	}
	return nil
}

func taskIdOf(result *mcp.CallToolResult) string {
	content, _ := result.StructuredContent.(object)
	taskId, _ := content["taskId"].(string)
	return taskId
}

type check struct {
	name string
	run  func(context.Context, *caller, string) error
}

var checks = []check{
	{"tools", func(ctx context.Context, baton *caller, revision string) error {
		if version := baton.InitializeResult().ProtocolVersion; version != revision {
			return fmt.Errorf("speaks %s", version)
		}
		names := []string{}
		for tool, err := range baton.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			names = append(names, tool.Name)
		}
		if listed := strings.Join(names, " "); listed != "task_status task_cancel echo index" {
			return fmt.Errorf("listed %s", listed)
		}
		return nil
	}},
	{"call", func(ctx context.Context, baton *caller, _ string) error {
		result, err := baton.echo(ctx, object{"message": "hello"}, nil)
		return said(result, err, "hello")
	}},
	{"progress", func(ctx context.Context, baton *caller, _ string) error {
		meta := mcp.Meta{"baton/metadata": object{"echo": object{"chunks": 3}}}
		params := &mcp.CallToolParams{Meta: meta, Name: "echo", Arguments: object{"message": "ab"}}
		params.SetProgressToken("p")
		result, err := baton.CallTool(ctx, params)
		if err := said(result, err, "ababab"); err != nil {
			return err
		}
		first, second := <-baton.progress, <-baton.progress
		if first >= second {
			return fmt.Errorf("progress %f, then %f", first, second)
		}
		return nil
	}},
	{"files", func(ctx context.Context, baton *caller, _ string) error {
		arguments := object{
			"files": []object{{"name": "a.bin", "mediaType": "application/octet-stream", "bytes": file}},
			"data":  object{"n": []int{1}},
		}
		result, err := baton.echo(ctx, arguments, nil)
		if err != nil {
			return err
		}
		for _, block := range result.Content {
			resource, ok := block.(*mcp.EmbeddedResource)
			if ok && bytes.Equal(resource.Resource.Blob, file) && strings.Contains(textOf(result), `"n"`) {
				return nil
			}
		}
		return fmt.Errorf("not the file and the data: %v", result)
	}},
	{"long", func(ctx context.Context, baton *caller, revision string) error {
		handed, err := baton.echo(ctx, object{"message": "x"}, slow)
		if err != nil {
			return err
		}
		other, err := connect(ctx, revision, os.Args[2])
		if err != nil {
			return err
		}
		defer other.Close()
		status, err := other.tool(ctx, "task_status", taskIdOf(handed))
		if err != nil {
			return err
		}
		if content, _ := status.StructuredContent.(object); content["state"] != "working" {
			return fmt.Errorf("is %v", status)
		}
		if _, err := other.tool(ctx, "task_cancel", taskIdOf(handed)); err != nil {
			return err
		}
		ended, err := other.tool(ctx, "task_status", taskIdOf(handed))
		if err == nil && !ended.IsError {
			err = fmt.Errorf("is not canceled: %v", ended)
		}
		return err
	}},
	{"question", func(ctx context.Context, baton *caller, revision string) error {
		result, err := baton.echo(ctx, object{"message": "x"}, asks)
		if err == nil && revision < "2026" {
			arguments := object{"message": "from a person", "taskId": taskIdOf(result)}
			result, err = baton.echo(ctx, arguments, nil)
		}
		return said(result, err, "from a person")
	}},
	{"errors", func(ctx context.Context, baton *caller, _ string) error {
		_, err := baton.CallTool(ctx, &mcp.CallToolParams{Name: "nothing", Arguments: object{}})
		var failure *jsonrpc.Error
		if !errors.As(err, &failure) || failure.Code != jsonrpc.CodeInvalidParams {
			return fmt.Errorf("no error of an unknown tool: %v", err)
		}
		result, err := baton.echo(ctx, object{"message": 7}, nil)
		if err == nil && (!result.IsError || !strings.Contains(textOf(result), "arguments.message")) {
			err = fmt.Errorf("no error of an argument: %v", result)
		}
		return err
	}},
	{"token", func(ctx context.Context, _ *caller, revision string) error {
		other, err := connect(ctx, revision, "wrong")
		if err == nil {
			other.Close()
			return fmt.Errorf("connected")
		}
		if !strings.Contains(err.Error(), "Unauthorized") {
			return fmt.Errorf("does not say why: %w", err)
		}
		return nil
	}},
}

func checked(check check, revision string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	baton, err := connect(ctx, revision, os.Args[2])
	if err != nil {
		return err
	}
	defer baton.Close()
	return check.run(ctx, baton, revision)
}

func main() {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for _, check := range checks {
			if err := checked(check, revision); err != nil {
				fmt.Printf("failed %s %s: %q\n", revision, check.name, err)
			} else {
				fmt.Printf("ok %s %s\n", revision, check.name)
			}
		}
	}
}
