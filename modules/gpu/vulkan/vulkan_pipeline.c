// SPDX-License-Identifier: MIT
// Pipelines, and what they see: one descriptor set, with a place for every bit of the masks.

#include "vulkan.h"

#define BINDING_COUNT_MAX (NB_GPU_BUFFER_BINDING_COUNT + NB_GPU_IMAGE_BINDING_COUNT)

// --- layouts ---

static void bindings_add(VkDescriptorSetLayoutBinding *bindings, uint32_t *count, uint32_t mask, uint32_t first,
                         VkDescriptorType type) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
        if ((mask & 1u << bit) == 0) continue;
        bindings[(*count)++] = (VkDescriptorSetLayoutBinding){
            .binding = first + bit, .descriptorType = type, .descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_ALL};
    }
}

static VkResult set_layout_create(nbi_vulkan *v, nbi_vulkan_layout *layout) {
    VkDescriptorSetLayoutBinding bindings[2 * BINDING_COUNT_MAX];
    uint32_t count = 0;
    bindings_add(bindings, &count, layout->uniform_mask, 0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
    bindings_add(bindings, &count, layout->storage_mask, 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    bindings_add(bindings, &count, layout->sampled_mask, NB_GPU_BUFFER_BINDING_COUNT,
                 VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER);
    bindings_add(bindings, &count, layout->storage_image_mask, NB_GPU_BUFFER_BINDING_COUNT,
                 VK_DESCRIPTOR_TYPE_STORAGE_IMAGE);
    VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = count, .pBindings = bindings};
    return v->vk.CreateDescriptorSetLayout(v->device, &info, NULL, &layout->set);
}

static VkResult pipeline_layout_create(nbi_vulkan *v, nbi_vulkan_layout *layout) {
    VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_ALL, .size = layout->push_bytes};
    VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                       .setLayoutCount = 1,
                                       .pSetLayouts = &layout->set,
                                       .pushConstantRangeCount = layout->push_bytes > 0 ? 1 : 0,
                                       .pPushConstantRanges = &push};
    return v->vk.CreatePipelineLayout(v->device, &info, NULL, &layout->pipeline);
}

static bool sees_the_same(const nbi_vulkan_layout *a, const nbi_vulkan_layout *b) {
    return a->uniform_mask == b->uniform_mask && a->storage_mask == b->storage_mask &&
           a->sampled_mask == b->sampled_mask && a->storage_image_mask == b->storage_image_mask &&
           a->push_bytes == b->push_bytes;
}

static void layout_release(nbi_vulkan *v, uint32_t index) {
    nbi_vulkan_layout *layout = &v->layouts[index];
    if (--layout->use_count > 0) return;
    v->vk.DestroyPipelineLayout(v->device, layout->pipeline, NULL);
    v->vk.DestroyDescriptorSetLayout(v->device, layout->set, NULL);
    *layout = (nbi_vulkan_layout){0};
}

// One that is there already, or a new one. There are as many records as pipelines.
static nb_result layout_acquire(nbi_vulkan *v, const nb_gpu_pipeline_desc *desc, uint32_t *out) {
    nbi_vulkan_layout wanted = {.uniform_mask = desc->uniform_mask,
                                .storage_mask = desc->storage_mask,
                                .sampled_mask = desc->sampled_mask,
                                .storage_image_mask = desc->storage_image_mask,
                                .push_bytes = desc->push_bytes,
                                .use_count = 1};
    uint32_t unused = 0;
    for (uint32_t i = 0; i < v->limits.pipeline_count_max; ++i) {
        if (v->layouts[i].use_count == 0) {
            unused = i;
        } else if (sees_the_same(&v->layouts[i], &wanted)) {
            ++v->layouts[i].use_count;
            *out = i;
            return NB_OK;
        }
    }
    VkResult result = set_layout_create(v, &wanted);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkCreateDescriptorSetLayout");
    result = pipeline_layout_create(v, &wanted);
    if (result != VK_SUCCESS) {
        v->vk.DestroyDescriptorSetLayout(v->device, wanted.set, NULL);
        return nbi_vulkan_fail(v, result, "vkCreatePipelineLayout");
    }
    v->layouts[unused] = wanted;
    *out = unused;
    return NB_OK;
}

// --- shaders ---

static VkResult shader_open(nbi_vulkan *v, const nb_gpu_shader *shader, VkShaderStageFlagBits stage,
                            VkPipelineShaderStageCreateInfo *out) {
    *out = (VkPipelineShaderStageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = stage, .pName = "main"};
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = shader->size_bytes, .pCode = shader->words};
    return v->vk.CreateShaderModule(v->device, &info, NULL, &out->module);
}

// --- pipelines that draw ---

static const VkPrimitiveTopology topologies[NB_GPU_TOPOLOGY_COUNT] = {
    [NB_GPU_TOPOLOGY_TRIANGLES] = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST,
    [NB_GPU_TOPOLOGY_TRIANGLE_STRIP] = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP,
    [NB_GPU_TOPOLOGY_LINES] = VK_PRIMITIVE_TOPOLOGY_LINE_LIST,
    [NB_GPU_TOPOLOGY_POINTS] = VK_PRIMITIVE_TOPOLOGY_POINT_LIST,
};

static const VkCullModeFlags culls[NB_GPU_CULL_COUNT] = {[NB_GPU_CULL_NONE] = VK_CULL_MODE_NONE,
                                                         [NB_GPU_CULL_BACK] = VK_CULL_MODE_BACK_BIT,
                                                         [NB_GPU_CULL_FRONT] = VK_CULL_MODE_FRONT_BIT};

static VkPipelineColorBlendAttachmentState blend_state(nb_gpu_blend blend) {
    VkPipelineColorBlendAttachmentState state = {.blendEnable = blend != NB_GPU_BLEND_NONE,
                                                 .srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA,
                                                 .dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
                                                 .srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE,
                                                 .dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
                                                 .colorWriteMask = VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT |
                                                                   VK_COLOR_COMPONENT_B_BIT | VK_COLOR_COMPONENT_A_BIT};
    if (blend != NB_GPU_BLEND_ADD) return state;
    state.srcColorBlendFactor = state.dstColorBlendFactor = VK_BLEND_FACTOR_ONE;
    state.dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE;
    return state;
}

static VkPipelineDepthStencilStateCreateInfo depth_state(nb_gpu_depth depth) {
    return (VkPipelineDepthStencilStateCreateInfo){.sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
                                                   .depthTestEnable = depth != NB_GPU_DEPTH_NONE,
                                                   .depthWriteEnable = depth == NB_GPU_DEPTH_TEST_WRITE,
                                                   .depthCompareOp = VK_COMPARE_OP_GREATER_OR_EQUAL};
}

static VkResult graphics_create(nbi_vulkan *v, const nb_gpu_pipeline_desc *desc, VkPipelineLayout layout,
                                const VkPipelineShaderStageCreateInfo *stages, VkPipeline *out) {
    VkFormat colors[NB_GRAPH_COLOR_COUNT_MAX];
    VkPipelineColorBlendAttachmentState blends[NB_GRAPH_COLOR_COUNT_MAX];
    for (uint32_t i = 0; i < desc->color_count; ++i) {
        colors[i] = nbi_vulkan_format(desc->colors[i]);
        blends[i] = blend_state(desc->blend);
    }
    VkPipelineRenderingCreateInfo rendering = {.sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO,
                                               .colorAttachmentCount = desc->color_count,
                                               .pColorAttachmentFormats = colors,
                                               .depthAttachmentFormat = nbi_vulkan_format(desc->depth_format)};
    VkPipelineVertexInputStateCreateInfo vertices = {.sType =
                                                         VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo assembly = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = topologies[desc->topology]};
    VkPipelineViewportStateCreateInfo viewport = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .scissorCount = 1};
    VkPipelineRasterizationStateCreateInfo raster = {.sType =
                                                         VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
                                                     .cullMode = culls[desc->cull],
                                                     .frontFace = VK_FRONT_FACE_COUNTER_CLOCKWISE,
                                                     .lineWidth = 1};
    VkPipelineMultisampleStateCreateInfo samples = {.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
                                                    .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
    VkPipelineDepthStencilStateCreateInfo depth = depth_state(desc->depth);
    VkPipelineColorBlendStateCreateInfo blend = {.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
                                                 .attachmentCount = desc->color_count,
                                                 .pAttachments = blends};
    VkDynamicState states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
    VkPipelineDynamicStateCreateInfo dynamic = {.sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO,
                                                .dynamicStateCount = 2,
                                                .pDynamicStates = states};
    VkGraphicsPipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                         .pNext = &rendering,
                                         .stageCount = desc->fragment.words != NULL ? 2 : 1,
                                         .pStages = stages,
                                         .pVertexInputState = &vertices,
                                         .pInputAssemblyState = &assembly,
                                         .pViewportState = &viewport,
                                         .pRasterizationState = &raster,
                                         .pMultisampleState = &samples,
                                         .pDepthStencilState = &depth,
                                         .pColorBlendState = &blend,
                                         .pDynamicState = &dynamic,
                                         .layout = layout};
    return v->vk.CreateGraphicsPipelines(v->device, v->cache, 1, &info, NULL, out);
}

static VkResult graphics_open(nbi_vulkan *v, const nb_gpu_pipeline_desc *desc, VkPipelineLayout layout,
                              VkPipeline *out) {
    VkPipelineShaderStageCreateInfo stages[2];
    VkResult result = shader_open(v, &desc->vertex, VK_SHADER_STAGE_VERTEX_BIT, &stages[0]);
    if (result != VK_SUCCESS) return result;
    // Without a fragment shader only depth is written.
    stages[1].module = VK_NULL_HANDLE;
    if (desc->fragment.words != NULL)
        result = shader_open(v, &desc->fragment, VK_SHADER_STAGE_FRAGMENT_BIT, &stages[1]);
    if (result == VK_SUCCESS) {
        result = graphics_create(v, desc, layout, stages, out);
        v->vk.DestroyShaderModule(v->device, stages[1].module, NULL);
    }
    v->vk.DestroyShaderModule(v->device, stages[0].module, NULL);
    return result;
}

// --- pipelines that compute ---

static VkResult compute_open(nbi_vulkan *v, const nb_gpu_pipeline_desc *desc, VkPipelineLayout layout,
                             VkPipeline *out) {
    VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout};
    VkResult result = shader_open(v, &desc->compute, VK_SHADER_STAGE_COMPUTE_BIT, &info.stage);
    if (result != VK_SUCCESS) return result;
    result = v->vk.CreateComputePipelines(v->device, v->cache, 1, &info, NULL, out);
    v->vk.DestroyShaderModule(v->device, info.stage.module, NULL);
    return result;
}

// --- both ---

nb_result nbi_vulkan_pipeline_create(void *self, nb_gpu_index index, const nb_gpu_pipeline_desc *desc) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_pipeline pipeline = {.is_compute = desc->compute.words != NULL};
    nb_result result = layout_acquire(v, desc, &pipeline.layout);
    if (result != NB_OK) return result;
    VkPipelineLayout layout = v->layouts[pipeline.layout].pipeline;
    VkResult made = pipeline.is_compute ? compute_open(v, desc, layout, &pipeline.handle)
                                        : graphics_open(v, desc, layout, &pipeline.handle);
    if (made != VK_SUCCESS) {
        layout_release(v, pipeline.layout);
        nb_result failed = nbi_vulkan_fail(v, made, desc->name);
        // Beside memory and the device, what can be wrong with a pipeline is its shaders.
        bool is_known = failed == NB_ERR_MEMORY || failed == NB_ERR_LOST;
        return is_known ? failed : NB_ERR_MISUSE;
    }
    nbi_vulkan_name(v, VK_OBJECT_TYPE_PIPELINE, (uint64_t)pipeline.handle, desc->name);
    v->pipelines[index] = pipeline;
    return NB_OK;
}

void nbi_vulkan_pipeline_destroy(void *self, nb_gpu_index index) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_pipeline *pipeline = &v->pipelines[index];
    if (pipeline->handle == VK_NULL_HANDLE) return;
    v->vk.DestroyPipeline(v->device, pipeline->handle, NULL);
    layout_release(v, pipeline->layout);
    *pipeline = (nbi_vulkan_pipeline){0};
}
