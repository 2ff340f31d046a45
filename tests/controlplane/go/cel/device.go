package main

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// The device of a request: attributes as the API spells them, capacities as strings.
type deviceJSON struct {
	Driver                   string                                 `json:"driver"`
	AllowMultipleAllocations *bool                                  `json:"allowMultipleAllocations"`
	Attributes               map[string]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[string]string                      `json:"capacity"`
}

func (d deviceJSON) toDevice() (dracel.Device, error) {
	device := dracel.Device{
		Driver:                   d.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for name, attribute := range d.Attributes {
		device.Attributes[resourceapi.QualifiedName(name)] = attribute
	}
	for name, text := range d.Capacity {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return device, fmt.Errorf("capacity %s: %w", name, err)
		}
		device.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: quantity}
	}
	return device, nil
}

// variablesOf gives an expression of any type the variable that selectors have.
func variablesOf(env *cel.Env, device dracel.Device, lists bool) (map[string]any, error) {
	attributes := map[string]any{}
	for name, attribute := range device.Attributes {
		value, err := nativeValue(attribute, lists)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		domain, id := splitName(string(name), device.Driver)
		inner, ok := attributes[domain].(map[string]any)
		if !ok {
			inner = map[string]any{}
			attributes[domain] = inner
		}
		inner[id] = value
	}
	capacity := map[string]any{}
	for name, entry := range device.Capacity {
		domain, id := splitName(string(name), device.Driver)
		inner, ok := capacity[domain].(map[string]apiservercel.Quantity)
		if !ok {
			inner = map[string]apiservercel.Quantity{}
			capacity[domain] = inner
		}
		quantity := entry.Value
		inner[id] = apiservercel.Quantity{Quantity: &quantity}
	}
	multiple := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
	adapter := env.CELTypeAdapter()
	return map[string]any{"device": map[string]any{
		"driver":                   device.Driver,
		"allowMultipleAllocations": multiple,
		"attributes":               defaulting{types.NewStringInterfaceMap(adapter, attributes), adapter.NativeToValue(map[string]any{})},
		"capacity":                 defaulting{types.NewStringInterfaceMap(adapter, capacity), adapter.NativeToValue(map[string]any{})},
	}}, nil
}

func nativeValue(attribute resourceapi.DeviceAttribute, lists bool) (any, error) {
	switch {
	case lists && attribute.IntValues != nil:
		return attribute.IntValues, nil
	case lists && attribute.BoolValues != nil:
		return attribute.BoolValues, nil
	case lists && attribute.StringValues != nil:
		return attribute.StringValues, nil
	case attribute.IntValue != nil:
		return *attribute.IntValue, nil
	case attribute.BoolValue != nil:
		return *attribute.BoolValue, nil
	case attribute.StringValue != nil:
		return *attribute.StringValue, nil
	case attribute.VersionValue != nil:
		version, err := semver.Parse(*attribute.VersionValue)
		if err != nil {
			return nil, fmt.Errorf("parse semantic version: %w", err)
		}
		return apiservercel.Semver{Version: version}, nil
	}
	return nil, fmt.Errorf("unsupported attribute value")
}

func splitName(name, driver string) (string, string) {
	if domain, id, found := strings.Cut(name, "/"); found {
		return domain, id
	}
	return driver, name
}

// A map in which every key that is missing leads to the same value.
type defaulting struct {
	traits.Mapper
	missing ref.Val
}

func (m defaulting) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.Mapper.Find(key); found {
		return value, true
	}
	return m.missing, true
}
