// The oracle of the CEL tests: the device expressions of Kubernetes itself, one JSON object a line in, one out.
//
// A request names an expression and a device. In the mode "selector" the answer is that of DeviceMatches. In the mode
// "value" the same environment evaluates an expression of any type, and the answer describes the value. Either way the
// cost of the evaluation and the estimated cost are part of the answer. Evaluation is repeated, and an answer that
// changes from one time to the next (Go iterates over maps in random order) is marked as unstable.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"

	"github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type request struct {
	Expression string     `json:"expression"`
	Mode       string     `json:"mode"`
	Lists      bool       `json:"lists"`
	Device     deviceJSON `json:"device"`
}

type answer struct {
	Value        any     `json:"value,omitempty"`
	Error        string  `json:"error,omitempty"`
	CompileError string  `json:"compileError,omitempty"`
	Type         string  `json:"type,omitempty"`
	Cost         *uint64 `json:"cost,omitempty"`
	MaxCost      uint64  `json:"maxCost"`
	Unstable     bool    `json:"unstable,omitempty"`
}

func main() {
	repeat := flag.Int("repeat", 3, "evaluations per request")
	flag.Parse()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		var req request
		if err := json.Unmarshal(in.Bytes(), &req); err != nil {
			fmt.Fprintln(os.Stderr, "bad request:", err)
			os.Exit(2)
		}
		if err := encoder.Encode(respond(req, *repeat)); err != nil {
			fmt.Fprintln(os.Stderr, "cannot answer:", err)
			os.Exit(2)
		}
		out.Flush()
	}
}

func respond(req request, repeat int) (result answer) {
	defer func() {
		if problem := recover(); problem != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	device, err := req.Device.toDevice()
	if err != nil {
		return answer{Error: "device: " + err.Error()}
	}
	features := dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: req.Lists}
	evaluate := compileSelector
	if req.Mode == "value" {
		evaluate = compileValue
	}
	first, run := evaluate(req.Expression, features)
	if run == nil {
		return first
	}
	for i := 0; i < repeat; i++ {
		next := first
		run(device, &next)
		if i > 0 && !reflect.DeepEqual(result, next) {
			next.Unstable = true
			return next
		}
		result = next
	}
	return result
}

type evaluation func(device dracel.Device, into *answer)

func compileSelector(expression string, features dracel.Features) (answer, evaluation) {
	compiled := dracel.GetCompiler(features).CompileCELExpression(expression, dracel.Options{})
	if compiled.Error != nil {
		return answer{CompileError: compiled.Error.Detail}, nil
	}
	first := answer{Type: compiled.OutputType.String(), MaxCost: compiled.MaxCost}
	return first, func(device dracel.Device, into *answer) {
		matches, details, err := compiled.DeviceMatches(context.Background(), device)
		into.Cost = details.ActualCost()
		if err != nil {
			into.Error = err.Error()
			return
		}
		into.Value = matches
	}
}

func compileValue(expression string, features dracel.Features) (answer, evaluation) {
	env := dracel.GetCompiler(features).CompileCELExpression("true", dracel.Options{}).Environment
	ast, issues := env.Compile(expression)
	if issues != nil && issues.Err() != nil {
		return answer{CompileError: "compilation failed: " + issues.String()}, nil
	}
	program, err := env.Program(ast, cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost))
	if err != nil {
		return answer{CompileError: "program instantiation failed: " + err.Error()}, nil
	}
	return answer{Type: ast.OutputType().String()}, func(device dracel.Device, into *answer) {
		variables, err := variablesOf(env, device, features.EnableListTypeAttributes)
		if err != nil {
			into.Error = err.Error()
			return
		}
		value, details, err := program.ContextEval(context.Background(), variables)
		into.Cost = details.ActualCost()
		if err != nil {
			into.Error = err.Error()
			return
		}
		into.Value = describe(value)
	}
}
